"""`rootsd version`: show the versions."""

from __future__ import annotations

from typing import TypedDict

from rootsd import __version__
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options.flags import pass_invocation, verb
from rootsd.cli.text.render import CommandResult
from rootsd.wire.daemon import DaemonStatus

SECTION = "Inspect"


class VersionOutput(TypedDict):
    """The versions."""

    version: str
    """The version of this command."""
    daemon: DaemonStatus | None
    """The daemon process, or null if none runs."""


@verb(
    "version",
    prints=(VersionOutput,),
    epilog="rootsd version",
)
@pass_invocation
def command(invocation: Invocation) -> None:
    """Print the version of this command, and of the daemon if one runs."""
    status = invocation.status_if_running()
    daemon = status and status["daemon"]
    output = invocation.output
    if output.is_json:
        extra = {"version": __version__, "daemon": daemon}
        output.object(CommandResult(extra=extra))
        return
    output.line(f"rootsd {__version__}")
    if daemon is None:
        output.message("The daemon is not running: rootsd up")
        return
    output.line(f"daemon {daemon['version']}")
    if daemon["version"] != __version__:
        output.warn(["the daemon is another version; try: rootsd down && rootsd up"])
