"""`rootsd guard`: show or set who may decide."""

from __future__ import annotations

import click

from rootsd.cli.decisions import DRY_RUN_NOTICE, effect_of
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.guard import Guard
from rootsd.wire.guard import GuardQuery, GuardStatus, SetGuardRequest

SECTION = "Decide"

_MEANING = {
    Guard.AGENTS: "Programs may decide, except those that a detected agent has started.",
    Guard.TERMINAL: "A person must confirm every decision on a terminal; agents may not decide.",
    Guard.OFF: "Every program that runs as you may decide.",
}


class GuardOutput(GuardStatus):
    """The guard."""

    dry_run: bool
    """Whether nothing was changed, because of `--dry-run`."""


@click.command(
    "guard",
    cls=VerbCommand,
    prints=(GuardOutput,),
    epilog="rootsd guard\nrootsd guard terminal",
)
@click.argument("mode", required=False, type=click.Choice([guard.value for guard in Guard]))
@click.option("--dry-run", is_flag=True, help="only show what it would change")
@pass_invocation
def command(invocation: Invocation, *, mode: str | None, dry_run: bool) -> None:
    """Show or set who may decide which projects are published.

    \b
    agents    programs that no coding agent and no MCP client has started
    terminal  in addition, a person types a word on a terminal, each time
    off       every program that runs as you

    The guard stops and records an agent that approves projects for itself. It is not a security
    boundary: an agent that runs as you can do everything that you can.
    """
    if mode is None and dry_run:
        raise click.UsageError("name a mode: agents, terminal, or off")
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
    output.message(_MEANING[Guard(answer["guard"])])
    if dry_run:
        output.message(DRY_RUN_NOTICE)
    output.warn(answer["warnings"])
