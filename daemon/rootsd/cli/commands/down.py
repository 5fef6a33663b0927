"""`rootsd down`."""

from __future__ import annotations

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult


@click.command(
    "down",
    cls=VerbCommand,
    epilog="rootsd down",
)
@pass_invocation
def command(invocation: Invocation) -> None:
    """Stop the daemon. Nothing starts it again but `rootsd up`; decisions are kept."""
    from rootsd.cli import lifecycle
    from rootsd.service import start_record

    start_record.mark_stopped()  # first, or a bridge would start the next one at once
    pid = lifecycle.shut_down(invocation)
    output = invocation.output
    if output.is_json:
        output.object(CommandResult(extra={"stopped": pid}))
    elif pid is None:
        output.say("The daemon was not running.")
    else:
        output.say(f"The daemon (pid {pid}) has ended.")
