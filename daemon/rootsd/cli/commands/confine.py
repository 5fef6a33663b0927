"""`rootsd confine`: run a program that sees only approved roots and tools.

This is only the help, and `--clean`. `rootsd.__main__` starts the rest itself without click.
"""

from __future__ import annotations

from typing import TypedDict

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.options.wall import name_option, only_option, wall_options

SECTION = "For programs"

EXAMPLES = """\
rootsd confine -- bash
rootsd confine --no-network --only api -- make test
rootsd confine --static -- bash
rootsd confine --add web,lib -- claude
rootsd confine --show
rootsd confine --clean"""


class KeptNameItem(TypedDict):
    """What the programs of one name keep."""

    name: str
    """The name of the programs."""
    size: int
    """How many bytes it takes on the disk."""
    used: str
    """When a program of this name started last, as RFC 3339."""
    running: bool
    """Whether such a program runs, so that nothing can be removed."""
    folder: str
    """Where it lies."""


class KeptNamesOutput(TypedDict):
    """With `--clean`."""

    items: list[KeptNameItem]
    """What was kept, by name."""
    removed: list[str]
    """The names whose kept files are removed now."""
    dry_run: bool
    """Whether nothing was removed, because of --dry-run."""


@verb(
    "confine",
    prints=(KeptNamesOutput,),
    epilog=EXAMPLES,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@only_option("show only")
@click.option("--all", "everything", is_flag=True, help="show every approved root")
@click.option(
    "--add",
    multiple=True,
    metavar="NAME,...",
    shell_complete=completion.scopes,
    help="also show these roots, and tell an agent about them by its own option",
)
@click.option(
    "--tag",
    multiple=True,
    metavar="TAG",
    shell_complete=completion.tags,
    help="the same for the roots with this tag",
)
@click.option(
    "--subfolder",
    is_flag=True,
    help="of this project, show only the working directory; git does not work in it then",
)
@wall_options
@name_option("program")
@click.option("--show", is_flag=True, help="print what the program would see, and why")
@click.option(
    "--clean",
    is_flag=True,
    help="list what programs have installed and cached inside, for all names or the given ones,"
    " and remove it after a question",
)
@click.option("--yes", is_flag=True, help="with --clean, do not ask")
@click.option("--dry-run", is_flag=True, help="with --clean, only show what would be removed")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]...")
@pass_invocation
def command(
    invocation: Invocation,
    /,
    *,
    words: tuple[str, ...],
    clean: bool,
    yes: bool,
    dry_run: bool,
    **_: object,
) -> int:
    """Run a program that reaches the approved roots, and little else.

    Of your other files, it sees only tools and settings without secrets. The kernel enforces this
    for the program and everything that it starts. When you approve a folder, it appears in the
    running program. When you deny one, it is gone. Without --only or --all, the program sees the
    roots that `rootsd run --help` describes.

    The home folder and /tmp are empty and private to the program. System files and your settings
    are read-only. What the program installs or caches is kept for programs of the same name, and
    changes nothing outside. In a root, .git/hooks is read-only, and so are untracked files that
    tools outside run, such as .envrc. rootsd reports changes of tracked ones.

    In a pending project, confine asks on a terminal whether to approve it, for good or for this
    program alone. After a no, and without a terminal, the program starts in an empty folder.

    If the system forbids user namespaces, use --static. It uses only Landlock, and says at the
    start what it cannot do. It cannot add a folder to a running program, and it ends the program
    when one of its folders is no longer approved.

    --clean takes names of programs, or those that you gave with --name. It keeps the state of
    agents, and what a running program uses.

    rootsd approve does not work inside; use another terminal. The exit status is that of the
    program. As in a shell, it is 127 if the program does not exist, and 126 if it cannot be run.
    It is 125 if the wall ended the program. Linux only.
    """
    if clean:
        if late := [word for word in words if word.startswith("-")]:
            raise click.UsageError(f"put {late[0]} before the names")
        from rootsd.cli.answers import kept_names

        return kept_names.clean(invocation, words, yes=yes, dry_run=dry_run)
    from rootsd.cli.answers.start_folder import ask_about_start
    from rootsd.wall.session import main as confine

    flags = ["--quiet"] if invocation.flags.quiet else []
    flags += ["--no-input"] if invocation.flags.no_input else []
    return confine.main([*flags, *invocation.arguments], ask_about_start)
