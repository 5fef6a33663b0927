"""`rootsd pending`: list the projects that need your decision."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import ID, NAME, NOTE, PATH, PENDING_COLUMNS, pluralize
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.errors import Exit
from rootsd.wire.projects import ProjectsQuery, Selection

SECTION = "Decide"

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+-]*")


_UNPUBLISHABLE_COLUMNS = tuple(replace(column, title="") for column in (ID, NAME, PATH, NOTE))


@click.command(
    "pending",
    cls=VerbCommand,
    epilog="rootsd pending\nrootsd pending --count\nrootsd pending --exit-code && echo none",
)
@click.option(
    "--count", is_flag=True, help="print only the number; fast enough for a shell prompt"
)
@click.option("--exit-code", is_flag=True, help="exit with status 3 if a project is pending")
@pass_invocation
def command(invocation: Invocation, *, count: bool, exit_code: bool) -> int:
    """List the projects that need your decision.

    Pending projects are not published, and no client waits for them.
    """
    listing = invocation.call(ProjectsQuery(cwd=invocation.cwd, select=Selection.PENDING))
    items, output = listing["items"], invocation.output
    unpublishable = listing.get("unpublishable", [])  # missing in older daemons
    extra = {"unpublishable": unpublishable}
    answer = CommandResult(items, listing["revision"], listing["warnings"], extra)
    if not count:
        output.show(answer, PENDING_COLUMNS)
    elif output.is_json:
        extra = {"count": len(items)}
        output.object(CommandResult((), listing["revision"], listing["warnings"], extra))
    else:
        output.line(str(len(items)))
    if output.on_terminal and not count:
        output.message(_what_to_do(items))
        if unpublishable:
            output.message(f"{pluralize(len(unpublishable), 'project')} can never be published:")
            output.show(CommandResult(unpublishable), _UNPUBLISHABLE_COLUMNS)
    return Exit.PENDING if exit_code and items else Exit.OK


def _what_to_do(items: Sequence[Mapping[str, Any]]) -> str:
    if not items:
        return "No project needs a decision."
    need = "1 needs a decision" if len(items) == 1 else f"{len(items)} need a decision"
    name, id_ = items[0]["name"], items[0]["id"]
    # The line is for copying into a shell: use the id if the name needs quotes.
    ref = name if _PLAIN.fullmatch(name) else id_
    return f"{need}.  rootsd approve {ref}   |   rootsd deny {ref}"
