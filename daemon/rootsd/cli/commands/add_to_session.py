"""`rootsd add-to-session`: add roots to a program that runs behind the wall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from rootsd.cli.answers.decisions import effect_of
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.terminal_face import GLOB
from rootsd.cli.answers.walled_program import meant_program
from rootsd.cli.commands.open import only_root
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import Column, CommandResult, path_column
from rootsd.core.errors import Exit
from rootsd.wire.projects import ProjectsQuery, Selection
from rootsd.wire.wall import AddedRoots, AddRootsRequest

SECTION = "Decide"

_COLUMNS = (
    Column("PROGRAM", lambda item: item["program"]),
    Column("NAME", lambda item: item["name"]),
    path_column("PATH", lambda item: item["path"]),
    Column("RESULT", lambda item: item["result"]),
)


class AddToSessionOutput(AddedRoots):
    """The roots that the program gets."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@verb(
    "add-to-session",
    prints=(AddToSessionOutput,),
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

    Without --to, rootsd takes the program that sees the project of the working directory, if there
    is only one.

    The agent itself does not notice a new folder, so tell it: in Claude Code, type /add-dir PATH.
    """
    program = meant_program(invocation, to, "add-to-session REF")
    roots = [root for ref in refs for root in _roots(invocation, ref)]
    order = AddRootsRequest(
        tuple(root["name"] for root in roots), program["id"], effect_of(dry_run=dry_run)
    )
    items = invocation.call(order)["items"]
    invocation.output.show(CommandResult(items, extra={"dry_run": dry_run}), _COLUMNS)
    return Exit.OK


def _roots(invocation: Invocation, ref: str) -> Sequence[Mapping[str, Any]]:
    """Return the root that a reference means, or those that a glob matches. Raises RootsdError."""
    query = ProjectsQuery(cwd=invocation.cwd, refs=(ref,), select=Selection.NAMED)
    items = invocation.call(query)["items"]
    if GLOB.isdisjoint(ref):
        return [only_root(ref, items)]
    return [only_root(item["name"], [item]) for item in items]
