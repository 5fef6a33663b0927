"""`rootsd version`."""

from __future__ import annotations

import click

from rootsd import __version__
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.render import Answer
from rootsd.cli.session import Session
from rootsd.core.errors import DaemonUnreachable
from rootsd.wire.running import StatusQuery


@click.command(
    "version",
    cls=Command,
    epilog="rootsd version",
)
@pass_session
def command(session: Session) -> None:
    """Print the version of this command, and of the daemon if one runs."""
    try:
        daemon = session.call(StatusQuery())["daemon"]
    except DaemonUnreachable:
        daemon = None
    output = session.output
    if output.is_json:
        output.object(Answer(extra={"version": __version__, "daemon": daemon}))
        return
    output.line(f"rootsd {__version__}")
    if daemon is None:
        output.say("the daemon is not running")
        return
    output.line(f"daemon {daemon['version']}")
    if daemon["version"] != __version__:
        output.warn(["the daemon is of another version; rootsd down && rootsd up"])
