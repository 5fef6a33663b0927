"""`rootsd guard`."""

from __future__ import annotations

import click

from rootsd.cli.decisions import UNCHANGED, effect_of
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer
from rootsd.cli.session import Session
from rootsd.core.callers import Guard
from rootsd.wire.guarding import GuardQuery, SetGuard

_MEANING = {
    Guard.AGENTS: "agents that can be seen may not decide; everybody else may",
    Guard.TERMINAL: "every decision has to be confirmed on a terminal, and never by an agent",
    Guard.OFF: "every program that runs as you may decide",
}


@click.command(
    "guard",
    cls=Command,
    epilog="rootsd guard\nrootsd guard terminal",
)
@click.argument("mode", required=False, type=click.Choice([guard.value for guard in Guard]))
@click.option("--dry-run", is_flag=True, help="only show what it would mean")
@pass_session
def command(session: Session, *, mode: str | None, dry_run: bool) -> None:
    """Show or set who may decide what is published.

    agents: whoever was not started by a coding agent or an MCP client. terminal: whoever also
    types a word on a terminal, each time. off: everybody. This stops and records the casual
    self-approval of an agent; it is no boundary, since an agent that runs as you can do what
    you can.
    """
    if mode is None and dry_run:
        raise click.UsageError("name what to set: agents, terminal or off")
    request = GuardQuery() if mode is None else SetGuard(Guard(mode), effect_of(dry_run=dry_run))
    answer = session.call(request)
    output = session.output
    if output.is_json:
        extra = {"guard": answer["guard"], "dry_run": dry_run}
        output.object(Answer((), answer["revision"], answer["warnings"], extra))
        return
    output.line(answer["guard"])
    output.say(_MEANING[Guard(answer["guard"])])
    if dry_run:
        output.say(UNCHANGED)
    output.warn(answer["warnings"])
