"""`rootsd add-to-session`: add roots to a program that runs behind the wall."""

from __future__ import annotations

import click

from rootsd.cli.answers.decisions import effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.walled_program import meant_program
from rootsd.cli.commands.open import only_root
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.render import Column, CommandResult
from rootsd.core.errors import Exit
from rootsd.wire.projects import ProjectsQuery, Selection
from rootsd.wire.wall import AddedRoots, AddRootsRequest

SECTION = "Decide"

_COLUMNS = (
    Column("PROGRAM", lambda item: item["program"]),
    Column("NAME", lambda item: item["name"]),
    Column("PATH", lambda item: item["path"], short=lambda item: shorten_home(item["path"])),
    Column("RESULT", lambda item: item["result"]),
)


@verb(
    "add-to-session",
    prints=(AddedRoots,),
    epilog="rootsd add-to-session web\nrootsd add-to-session web lib --to claude",
)
@click.argument(
    "refs",
    nargs=-1,
    required=True,
    metavar="REF...",
    shell_complete=completion.projects(Selection.PUBLISHED),
)
@click.option("--to", metavar="NAME|PID", help="the program, as rootsd sessions lists it")
@click.option("--dry-run", is_flag=True, help="only show what would be added")
@pass_invocation
def command(
    invocation: Invocation, *, refs: tuple[str, ...], to: str | None, dry_run: bool
) -> int:
    """Add roots to a program that runs behind the wall.

    The folders appear in the program at once, and stay until it ends or you deny them. They must
    be approved: this command approves nothing.

    Without --to, it is the only program that sees the project of the working directory.

    The agent itself does not notice new folders. Name them to it: Claude Code, for example, takes
    /add-dir PATH.
    """
    program = meant_program(invocation, to, "add-to-session REF")
    listing = invocation.call(ProjectsQuery(cwd=invocation.cwd, refs=refs))
    roots = [only_root(item["name"], [item]) for item in listing["items"]]
    order = AddRootsRequest(
        tuple(root["name"] for root in roots), program["id"], effect_of(dry_run=dry_run)
    )
    items = invocation.call(order)["items"]
    invocation.output.show(CommandResult(items), _COLUMNS)
    return Exit.OK
