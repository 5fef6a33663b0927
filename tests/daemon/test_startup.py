"""The launcher learns that the daemon is ready, or that `rootsd down` came first."""

from __future__ import annotations

import os

from rootsd.daemon.startup import notify_launcher
from rootsd.service import start_record


def _told(ready_fd: int, read_fd: int) -> tuple[bytes, int]:
    stops: list[None] = []
    notify_launcher(ready_fd, lambda: stops.append(None))
    with os.fdopen(read_fd, "rb") as told:
        return told.read(), len(stops)


def test_the_launcher_gets_ready_and_the_daemon_continues() -> None:
    read, write = os.pipe()
    assert _told(write, read) == (b"ready\n", 0)


def test_after_a_down_the_launcher_gets_the_reason_and_the_daemon_ends() -> None:
    start_record.mark_stopped()
    read, write = os.pipe()
    told, stops = _told(write, read)
    assert told.startswith(b"error ")
    assert stops == 1


def test_without_a_launcher_no_message_is_sent() -> None:
    start_record.mark_stopped()
    stops: list[None] = []
    notify_launcher(None, lambda: stops.append(None))
    assert stops == []
