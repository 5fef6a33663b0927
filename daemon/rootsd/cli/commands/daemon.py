"""`rootsd daemon`: the one command that becomes the daemon instead of asking it."""

from __future__ import annotations

import click

from rootsd.cli.becoming import become_daemon
from rootsd.cli.flags import Command, pass_session
from rootsd.cli.session import Session


@click.command(
    "daemon",
    cls=Command,
    epilog="rootsd daemon",
)
@click.option("--ready-fd", type=int, metavar="FD", help="write 'ready' here once it can be asked")
@click.option("--detach", is_flag=True, help="go on in the background, as a child of nobody")
@pass_session
def command(session: Session, *, ready_fd: int | None, detach: bool) -> int:
    """Run the daemon in the foreground, until a signal or `rootsd down` ends it.

    This is what a service unit runs. `rootsd up` starts it in the background for you.
    """
    return become_daemon(session, ready_fd=ready_fd, detach=detach)
