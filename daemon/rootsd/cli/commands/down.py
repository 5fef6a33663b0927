"""`rootsd down`: stop the daemon until the next up."""

from __future__ import annotations

from typing import TypedDict

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult

SECTION = "Set up"


class DownOutput(TypedDict):
    """The daemon that was stopped."""

    stopped: int | None
    """Its process id, or null if none was running."""


@click.command(
    "down",
    cls=VerbCommand,
    prints=(DownOutput,),
    epilog="rootsd down",
)
@pass_invocation
def command(invocation: Invocation) -> None:
    """Stop the daemon until the next `rootsd up`. Decisions are kept."""
    from rootsd.cli import lifecycle
    from rootsd.service import start_record

    start_record.mark_stopped()  # first, so that no bridge starts the daemon again
    pid = lifecycle.shut_down(invocation)
    output = invocation.output
    if output.is_json:
        output.object(CommandResult(extra={"stopped": pid}))
    elif pid is None:
        output.message("The daemon was not running.")
    else:
        output.message(f"The daemon (pid {pid}) is stopped.")
