"""The help of `rootsd bridge`; the bridge itself is started without the command line."""

from __future__ import annotations

import click

from rootsd.cli import completion
from rootsd.cli.flags import VerbCommand


@click.command(
    "bridge",
    cls=VerbCommand,
    epilog=(
        'claude mcp add rootsd -- "$(command -v rootsd)" bridge\n'
        'codex mcp add rootsd -- "$(command -v rootsd)" bridge\n'
        "rootsd bridge --only tag:work"
    ),
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME|tag:T|cwd",
    shell_complete=completion.scopes,
    help="publish only these roots: by name, by tag, or the one that holds the working directory",
)
@click.option("--client", metavar="NAME", help="what rootsd status calls this client")
@click.option("--any-uri", is_flag=True, help="also publish roots that are no folders")
def command(only: tuple[str, ...], client: str | None, *, any_uri: bool) -> int:
    """Connect an MCP client on standard input and output to the daemon.

    This is the command that the configuration of an MCP client names, by its full path, which
    rootsd doctor tells. It starts the daemon if it
    is down, unless you stopped it with `rootsd down`, and reconnects when the daemon restarts.
    """
    from rootsd.proxy.bridge import main as bridge

    words = [word for name in only for word in ("--only", name)]
    words += ["--client", client] if client else []
    words += ["--any-uri"] if any_uri else []
    return bridge.main(words)
