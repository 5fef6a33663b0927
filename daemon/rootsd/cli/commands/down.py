"""`rootsd down`."""

from __future__ import annotations

import click

from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer
from rootsd.cli.session import Session


@click.command(
    "down",
    cls=Command,
    epilog="rootsd down",
)
@pass_session
def command(session: Session) -> None:
    """Stop the daemon. Nothing starts it again but `rootsd up`; decisions are kept."""
    from rootsd.cli import lifecycle
    from rootsd.host.service import record

    record.forbid()  # first, or a bridge would start the next one at once
    pid = lifecycle.end(session)
    output = session.output
    if output.is_json:
        output.object(Answer(extra={"stopped": pid}))
    elif pid is None:
        output.say("The daemon was not running.")
    else:
        output.say(f"The daemon (pid {pid}) has ended.")
