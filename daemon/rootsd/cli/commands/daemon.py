"""`rootsd daemon`: the one command that becomes the daemon instead of asking it."""

from __future__ import annotations

import os

import click

from rootsd.cli.flags import Command
from rootsd.cli.session import Session, pass_session
from rootsd.core.errors import RootsdError


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
    if detach and os.fork():
        # Whoever waits for us is free, and the daemon belongs to no process tree that an MCP
        # client might end as a whole.
        os._exit(0)
    try:
        return run_here(session, ready_fd)
    except RootsdError as error:
        if ready_fd is not None:
            from rootsd.host.service import starter

            starter.say_failed(ready_fd, error)
        raise


def run_here(session: Session, ready_fd: int | None = None) -> int:
    """Be the daemon until it is stopped; the exit status. Raises RootsdError."""
    from rootsd.host.helper.link import start_helper
    from rootsd.host.openssl import do_without_openssl

    # Before the daemon is loaded, which the helper would keep in memory for nothing.
    helper = start_helper()
    try:
        do_without_openssl()
        from rootsd.app import daemon

        return daemon.run(session.places, helper=helper, ready_fd=ready_fd)
    finally:
        helper.close()
