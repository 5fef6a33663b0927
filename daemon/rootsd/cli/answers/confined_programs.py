"""End programs behind the wall from outside, as `rootsd down` does if a person asks for it.

A program ends with its front, the process of `rootsd confine` or `rootsd run`. The front passes
SIGTERM on, so that the program can save its work. If the front is killed, the kernel ends all
programs behind its wall. The status of the daemon names the front, as its warden has reported it.
So its pid counts only if the process that is connected to the daemon is this front, or its child.
If the daemon has died, the wall's own folder names the front: see `wall.session.running_walls`.
Source: pidfd_send_signal(2), proc_pid_stat(5).
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from rootsd.processes.process_tree import BareProcessReader

END_TIMEOUT_S = 5.0
"""How long programs may take to end before they are killed."""


def end_programs(items: Iterable[Mapping[str, Any]], timeout_s: float = END_TIMEOUT_S) -> None:
    """End the programs of `ConfinedProgramItem`s, and return when they have ended."""
    fronts = [fd for fd in map(_open_front, items) if fd is not None]
    try:
        for number in (signal.SIGTERM, signal.SIGCONT):  # one that is stopped must continue
            _send(fronts, number)
        _send(_still_running(fronts, timeout_s), signal.SIGKILL)
        _still_running(fronts, timeout_s)
    finally:
        for fd in fronts:
            os.close(fd)


def programs_without_daemon(state: bytes) -> list[dict[str, Any]]:
    """Return what `end_programs` needs of the walls that run, from the folder for our state."""
    from rootsd.places.base_folders import WALLS
    from rootsd.wall.session.running_walls import running_walls

    return [
        {"name": wall.name, "pid": wall.front, "warden": wall.front}
        for wall in running_walls(state + WALLS)
    ]


def _open_front(item: Mapping[str, Any]) -> int | None:
    """Return a pidfd of the front, or None if it has ended or is another process."""
    front, connected = item["pid"], item["warden"]
    if front <= 0:
        return None
    fd = None
    with suppress(OSError):
        fd = os.pidfd_open(front)
        if front in (connected, *_parents_of(connected)):
            return fd
    if fd is not None:
        os.close(fd)
    return None


def _parents_of(pid: int) -> Iterator[int]:
    """Yield the parent of a process, unless it has ended."""
    yield from (each.parent for each in BareProcessReader().lineage(pid).processes[:1])


def _send(fronts: Iterable[int], number: signal.Signals) -> None:
    for fd in fronts:
        with suppress(OSError):
            signal.pidfd_send_signal(fd, number)


def _still_running(fronts: Iterable[int], timeout_s: float) -> set[int]:
    """Wait for the ends of processes, and return those that have not ended in time."""
    left = set(fronts)
    poll = select.poll()
    for fd in left:
        poll.register(fd, select.POLLIN)
    end = time.monotonic() + timeout_s
    while left and (now := time.monotonic()) < end:
        for fd, _ in poll.poll((end - now) * 1000):
            poll.unregister(fd)
            left.discard(fd)
    return left
