"""`rootsd daemon`: the one command that becomes the daemon instead of asking it."""

from __future__ import annotations

import click

from rootsd.cli.flags import VerbCommand, pass_invocation
from rootsd.cli.invocation import Invocation
from rootsd.cli.run_daemon import run_daemon


@click.command(
    "daemon",
    cls=VerbCommand,
    epilog="rootsd daemon",
)
@click.option("--ready-fd", type=int, metavar="FD", help="write 'ready' here once it can be asked")
@click.option("--detach", is_flag=True, help="go on in the background, as a child of nobody")
@pass_invocation
def command(invocation: Invocation, *, ready_fd: int | None, detach: bool) -> int:
    """Run the daemon in the foreground, until a signal or `rootsd down` ends it.

    This is what a service unit runs. `rootsd up` starts it in the background for you.
    """
    return run_daemon(invocation, ready_fd=ready_fd, detach=detach)
