"""Becomes the daemon, and tells who started it how that went.

Without click, which would stay in the daemon's memory for good: a service unit and whoever starts
the daemon in the background come here straight from the dispatch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rootsd.cli import boundary
from rootsd.cli.session import Session
from rootsd.core.errors import RootsdError


def main(words: Sequence[str]) -> int:
    """Run `rootsd daemon` with these words behind it: none, or `--ready-fd FD`, with `--detach`
    before that or not. The exit status."""
    session = Session(command="daemon")
    ready_fd, detach = int(words[-1]) if words else None, "--detach" in words
    return boundary.guarded(
        session, lambda: become_daemon(session, ready_fd=ready_fd, detach=detach)
    )


def become_daemon(session: Session, *, ready_fd: int | None, detach: bool) -> int:
    """Be the daemon until it is stopped, with `detach` as a child of nobody; the exit status.

    On `ready_fd` is written "ready" once it can be asked, or why it cannot. Raises RootsdError.
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
    from rootsd.host.lean import leave_out_the_unused

    # Before the daemon is loaded, which the helper would keep in memory for nothing.
    helper = start_helper()
    try:
        leave_out_the_unused()
        from rootsd.app import daemon

        return daemon.run(session.places, helper=helper, ready_fd=ready_fd)
    finally:
        helper.close()
