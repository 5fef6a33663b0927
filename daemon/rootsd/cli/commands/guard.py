"""`rootsd guard`."""

from __future__ import annotations

import click

from rootsd.cli.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.guard import Guard
from rootsd.wire.guard import GuardQuery, SetGuardRequest

_MEANING = {
    Guard.AGENTS: "agents that can be seen may not decide; everybody else may",
    Guard.TERMINAL: "every decision has to be confirmed on a terminal, and never by an agent",
    Guard.OFF: "every program that runs as you may decide",
}


@click.command(
    "guard",
    cls=VerbCommand,
    epilog="rootsd guard\nrootsd guard terminal",
)
@click.argument("mode", required=False, type=click.Choice([guard.value for guard in Guard]))
@click.option("--dry-run", is_flag=True, help="only show what it would mean")
@pass_invocation
def command(invocation: Invocation, *, mode: str | None, dry_run: bool) -> None:
    """Show or set who may decide what is published.

    agents: whoever was not started by a coding agent or an MCP client. terminal: whoever also
    types a word on a terminal, each time. off: everybody. This stops and records the casual
    self-approval of an agent; it is no boundary, since an agent that runs as you can do what
    you can.
    """
    if mode is None and dry_run:
        raise click.UsageError("name what to set: agents, terminal or off")
    request = (
        GuardQuery() if mode is None else SetGuardRequest(Guard(mode), effect_of(dry_run=dry_run))
    )
    answer = invocation.call(request)
    output = invocation.output
    if output.is_json:
        extra = {"guard": answer["guard"], "dry_run": dry_run}
        output.object(CommandResult((), answer["revision"], answer["warnings"], extra))
        return
    output.line(answer["guard"])
    output.say(_MEANING[Guard(answer["guard"])])
    if dry_run:
        output.say(DRY_RUN_NOTICE)
    output.warn(answer["warnings"])
