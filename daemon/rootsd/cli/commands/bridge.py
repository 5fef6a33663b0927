"""`rootsd bridge`: connect an MCP client; its configuration runs this.

This is only the help. `rootsd.__main__` starts the bridge itself without click.
"""

from __future__ import annotations

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.options import completion
from rootsd.cli.options.flags import pass_invocation, verb

SECTION = "For programs"


@verb(
    "bridge",
    epilog=(
        'claude mcp add rootsd -- "$(command -v rootsd)" bridge\n'
        'codex mcp add rootsd -- "$(command -v rootsd)" bridge\n'
        "rootsd bridge --only tag:work"
    ),
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME|tag:T|focus|cwd",
    shell_complete=completion.scopes,
    help="publish only these roots: by name, by tag, with the tag of the focus, or the one that"
    " holds the working directory",
)
@click.option("--client", metavar="NAME", help="the name of this client in rootsd status")
@click.option("--any-uri", is_flag=True, help="also publish roots that are not folders")
@pass_invocation
def command(invocation: Invocation, /, **_: object) -> int:
    """Connect an MCP client on standard input and output to the daemon.

    The configuration of an MCP client names this command, by its full path; rootsd doctor prints
    that path. The bridge starts the daemon if it is not running, unless you stopped it with
    `rootsd down`. It reconnects when the daemon restarts.
    """
    from rootsd.proxy.bridge import main as bridge

    return bridge.main([*invocation.arguments])
