"""Run the daemon in this process, without loading click, and report when it is ready.

Without click, which would stay in the daemon's memory for good: a service unit and whoever starts
the daemon in the background come here straight from the dispatch.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rootsd.cli import error_handler
from rootsd.cli.invocation import Invocation
from rootsd.core.errors import RootsdError


def main(words: Sequence[str]) -> int:
    """Run `rootsd daemon` with these words behind it: none, or `--ready-fd FD`, with `--detach`
    before that or not. The exit status."""
    invocation = Invocation(command="daemon")
    ready_fd, detach = int(words[-1]) if words else None, "--detach" in words
    return error_handler.run_with_error_handler(
        invocation, lambda: run_daemon(invocation, ready_fd=ready_fd, detach=detach)
    )


def run_daemon(invocation: Invocation, *, ready_fd: int | None, detach: bool) -> int:
    """Be the daemon until it is stopped, with `detach` as a child of nobody; the exit status.

    On `ready_fd` is written "ready" once it can be asked, or why it cannot. Raises RootsdError.
    """
    if detach and os.fork():
        # Whoever waits for us is free, and the daemon belongs to no process tree that an MCP
        # client might end as a whole.
        os._exit(0)
    try:
        return run_in_foreground(invocation, ready_fd)
    except RootsdError as error:
        if ready_fd is not None:
            from rootsd.service import launcher

            launcher.report_failed(ready_fd, error)
        raise


def run_in_foreground(invocation: Invocation, ready_fd: int | None = None) -> int:
    """Be the daemon until it is stopped; the exit status. Raises RootsdError."""
    from rootsd.helper.client import start_helper

    # Before the daemon is loaded, which the helper would keep in memory for nothing.
    helper = start_helper()
    try:
        from rootsd.daemon import main as daemon

        return daemon.run(invocation.places, helper=helper, ready_fd=ready_fd)
    finally:
        helper.close()
