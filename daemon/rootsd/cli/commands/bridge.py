"""The help of `rootsd bridge`; the bridge itself is started without the command line."""

from __future__ import annotations

import click

from rootsd.cli.flags import Command


@click.command(
    "bridge",
    cls=Command,
    epilog="claude mcp add rootsd -- rootsd bridge",
)
@click.option("--client", metavar="NAME", help="what rootsd status calls this client")
def command(client: str | None) -> int:
    """Connect an MCP client on standard input and output to the daemon.

    This is the command that the configuration of an MCP client names. It starts the daemon if it
    is down, unless you stopped it with `rootsd down`, and reconnects when the daemon restarts.
    """
    from rootsd import bridge

    return bridge.main(["--client", client] if client else [])
