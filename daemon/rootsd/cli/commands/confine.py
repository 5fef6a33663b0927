"""`rootsd confine`: run a program that can reach only the approved roots.

This is only the help. `rootsd.__main__` starts `rootsd confine` itself without click.
"""

from __future__ import annotations

from typing import Any

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import VerbCommand, pass_invocation
from rootsd.cli.options.wall import wall_options, wall_words

SECTION = "For programs"

EXAMPLES = """\
rootsd confine -- bash
rootsd confine --no-network --only api -- make test
rootsd confine --static -- bash
rootsd confine --show"""


@click.command(
    "confine",
    cls=VerbCommand,
    epilog=EXAMPLES,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME|tag:T|focus|cwd",
    shell_complete=completion.scopes,
    help="show only these roots: by name, by tag, with the tag of the focus, or the one that holds"
    " the working directory",
)
@click.option("--all", "everything", is_flag=True, help="show every approved root")
@wall_options
@click.option("--name", metavar="NAME", help="the name of this program in rootsd sessions")
@click.option("--show", is_flag=True, help="print what the program would see, and why")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]...")
@pass_invocation
def command(
    invocation: Invocation,
    /,
    *,
    only: tuple[str, ...],
    name: str | None,
    words: tuple[str, ...],
    everything: bool,
    show: bool,
    **wall: Any,  # noqa: ANN401 - of several types; wall_words knows them
) -> int:
    """Run a program that can reach the approved roots and none of your other files.

    The kernel enforces this for the program and everything that it starts. When you approve a
    folder, it appears in the running program. When you deny one, it is gone. The default scope is
    the workspace of this session, as for rootsd run.

    The home folder and /tmp are empty and private to the program. System files are read-only,
    and caches are copy-on-write. Files in a root that git, editors, or agents would run outside
    are read-only, such as .git/hooks.

    If the system forbids user namespaces, use --static. It uses only Landlock, and says at the
    start what it cannot do. The folders are fixed at the start, and the end of an approval ends
    the program.

    Approve and deny outside: rootsd approve does not work inside. The exit status is that of the
    program. As in a shell, it is 127 if the program does not exist, and 126 if it cannot be run.
    It is 125 if the wall ended the program. Linux only.
    """
    from rootsd.wall.session import main as confine

    flags = [text for each in only for text in ("--only", each)]
    flags += ["--all"] if everything else []
    flags += ["--show"] if show else []
    flags += ["--quiet"] if invocation.flags.quiet else []
    flags += ["--no-input"] if invocation.flags.no_input else []
    flags += wall_words(wall)
    flags += ["--name", name] if name else []
    return confine.main([*flags, "--", *words] if words else flags)
