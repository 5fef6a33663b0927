"""`rootsd version`: show the versions, and what the last upgrade changed."""

from __future__ import annotations

from typing import Any, TypedDict

import click

from rootsd import __version__
from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.render import CommandResult
from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.wire.daemon import DaemonStatus, StatusQuery
from rootsd.wire.upgrade import UpgradeItem

SECTION = "Inspect"


class OutdatedService(TypedDict):
    """Files of the service that another version wrote, or that are for other folders."""

    problem: str
    """Which files, and what is wrong with them."""
    remedy: str
    """The command that updates them."""


class ChangedEntry(TypedDict):
    """An entry in the settings of an MCP client that gets other roots than before."""

    client: str
    """The name of the client."""
    entry: str
    """The name of the entry."""
    file: str
    """The file that has the entry."""
    more: list[str]
    """What it gets now and did not get before, one clause each."""
    less: list[str]
    """What it got before and does not get now, one clause each."""


class UpgradeSummary(UpgradeItem):
    """The last upgrade, and what it means for other programs."""

    service: OutdatedService | None
    """The service, or null if its files are up to date or it is not installed."""
    clients: list[ChangedEntry]
    """The entries of MCP clients that get other roots."""


class VersionOutput(TypedDict):
    """The versions, and the last upgrade."""

    version: str
    """The version of this command."""
    daemon: DaemonStatus | None
    """The daemon process, or null if none runs."""
    upgrade: UpgradeSummary | None
    """The last upgrade, or null if there was none or no daemon runs."""


@click.command(
    "version",
    cls=VerbCommand,
    prints=(VersionOutput,),
    epilog="rootsd version",
)
@pass_invocation
def command(invocation: Invocation) -> None:
    """Print the version of this command, and of the daemon if one runs.

    On a terminal and with --json, also say what the last upgrade changed.
    """
    try:
        daemon = invocation.call(StatusQuery())["daemon"]
    except DaemonUnreachable:
        daemon = None
    output = invocation.output
    summary = _upgrade(invocation) if daemon is not None else None
    if output.is_json:
        extra = {"version": __version__, "daemon": daemon, "upgrade": summary}
        output.object(CommandResult(extra=extra))
        return
    output.line(f"rootsd {__version__}")
    if daemon is None:
        output.message("The daemon is not running: rootsd up")
        return
    output.line(f"daemon {daemon['version']}")
    if daemon["version"] != __version__:
        output.warn(["the daemon is another version; try: rootsd down && rootsd up"])
    if summary is not None:
        from rootsd.cli import upgrade_summary

        upgrade_summary.print_summary(invocation, summary)


def _upgrade(invocation: Invocation) -> dict[str, Any] | None:
    """Return the summary of the last upgrade; None if none is known or nobody would see it."""
    if not (invocation.output.is_json or invocation.output.on_terminal):
        return None
    from rootsd.cli import upgrade_summary

    try:
        return upgrade_summary.read_summary(invocation)
    except RootsdError:  # an older daemon
        return None
