"""Run the daemon in this process, without loading click, and report when it is ready.

Service units and background starts call this module directly, so that click never takes up the
daemon's memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rootsd.cli.answers import error_handler
from rootsd.cli.answers.invocation import Invocation
from rootsd.core.errors import RootsdError


def main(words: Sequence[str]) -> int:
    """Run `rootsd daemon` and return the exit status.

    `words` are its arguments: none, or `[--detach] --ready-fd FD`.
    """
    invocation = Invocation(command="daemon")
    ready_fd, detach = int(words[-1]) if words else None, "--detach" in words
    return error_handler.run_with_error_handler(
        invocation, lambda: run_daemon(invocation, ready_fd=ready_fd, detach=detach)
    )


def run_daemon(invocation: Invocation, *, ready_fd: int | None, detach: bool) -> int:
    """Run the daemon until it is stopped, and return the exit status.

    With `detach`, run it in an orphaned child process. Write "ready" to `ready_fd` once the daemon
    takes requests, or the reason why it cannot start. Raises RootsdError.
    """
    if detach and os.fork():
        # The waiting parent process can go on. The daemon is in no process tree that an MCP
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
    """Run the daemon until it is stopped, and return the exit status. Raises RootsdError."""
    from rootsd.helper.client import start_helper

    # The helper starts before the daemon's modules load, and so does not hold them in memory.
    helper = start_helper()
    try:
        from rootsd.daemon import main as daemon

        return daemon.run(invocation.places, helper=helper, ready_fd=ready_fd)
    finally:
        helper.close()
