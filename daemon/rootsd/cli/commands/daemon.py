"""`rootsd daemon`: run the daemon in the foreground."""

from __future__ import annotations

import click

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.answers.run_daemon import run_daemon
from rootsd.cli.options.flags import pass_invocation, verb

SECTION = "For programs"


@verb(
    "daemon",
    epilog="rootsd daemon",
)
@click.option("--ready-fd", type=int, metavar="FD", help="write 'ready' to FD when it is ready")
@click.option("--detach", is_flag=True, help="run in the background, detached from this process")
@pass_invocation
def command(invocation: Invocation, *, ready_fd: int | None, detach: bool) -> int:
    """Run the daemon in the foreground, until a signal or `rootsd down` stops it.

    Service units run this command. To start the daemon in the background, use `rootsd up`.
    """
    return run_daemon(invocation, ready_fd=ready_fd, detach=detach)
