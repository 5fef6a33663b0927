"""`rootsd add`: propose a folder or a URI by hand."""

from __future__ import annotations

import click

from rootsd.cli import completion
from rootsd.cli.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.formatting import PROJECT_COLUMNS
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.labels import safe_label
from rootsd.wire.decisions import AddRequest

SECTION = "Decide"


@click.command(
    "add",
    cls=VerbCommand,
    epilog="rootsd add ~/notes --name notes\nrootsd add https://api.example.com/v1",
)
@click.argument("what", metavar="PATH|URI", shell_complete=completion.folders)
@click.option("--name", metavar="NAME", help="the name of the project")
@click.option("--dry-run", is_flag=True, help="only show what would be proposed")
@pass_invocation
def command(invocation: Invocation, *, what: str, name: str | None, dry_run: bool) -> None:
    """Propose a folder that no scan finds, or a URI. You then decide about it.

    Clients see an approved URI in tools and resources. MCP requires its roots to be files, so a
    URI is among them only if the client's bridge runs with --any-uri. To remove it again, use
    rootsd forget.
    """
    added = invocation.call(AddRequest(what, invocation.cwd, name, effect_of(dry_run=dry_run)))
    output = invocation.output
    extra = {"is_new": added["is_new"], "dry_run": dry_run}
    answer = CommandResult(added["items"], added["revision"], added["warnings"], extra)
    output.show(answer, PROJECT_COLUMNS)
    (item,) = added["items"]
    shown = safe_label(item["name"])
    if not added["is_new"]:
        output.message(f"{shown} is already known: it is {item['verdict']}.")
    if dry_run:
        output.message(DRY_RUN_NOTICE)
    elif item["verdict"] == "pending":
        output.message(f"It needs your decision: rootsd approve {item['id']}")
