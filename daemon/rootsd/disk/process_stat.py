"""Read what proc_pid_stat(5) tells everybody about a process or a thread.

The name in the line is chosen by the process, and may contain anything but a line feed: spaces,
parentheses, and what looks like the fields after it. So the name ends at the last parenthesis.
This module is small, because the front of a wall loads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

_MAX_LINE_BYTES = 4096
# Fields, counted after the name.
_STATE, _PARENT, _TERMINAL, _CHILDREN_FAULTS, _THREADS, _STARTED = 0, 1, 4, 8, 17, 19


class ProcessStat(NamedTuple):
    """The line of one process or thread.

    `state` is a letter, `terminal` a device number or 0, and `started` is in clock ticks since the
    start of the machine. `children_faults` grows when the process reaps a child.
    """

    pid: int
    name: bytes
    state: bytes
    parent: int
    terminal: int
    children_faults: int
    threads: int
    started: int

    @property
    def key(self) -> tuple[int, int]:
        """The pid and the start time, which no other process has."""
        return self.pid, self.started

    @property
    def has_ended(self) -> bool:
        """Whether it only waits to be reaped. Other threads of its process may still run."""
        return self.state in (b"Z", b"X")

    @property
    def has_wholly_ended(self) -> bool:
        """Whether all threads of the process have ended, so only its parent has to notice."""
        return self.has_ended and self.threads <= 1


def read_process_stat(folder: bytes) -> ProcessStat:
    """Return the line in `folder`, such as `/proc/PID/` or `/proc/PID/task/TID/`.

    Raises OSError, also if the process ends while this reads.
    """
    fd = os.open(folder + b"stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        head, _, tail = os.read(fd, _MAX_LINE_BYTES).rpartition(b")")
    finally:
        os.close(fd)
    pid, _, name = head.partition(b" (")
    fields = tail.split()
    try:
        return ProcessStat(
            int(pid), name, fields[_STATE], int(fields[_PARENT]), int(fields[_TERMINAL]),
            int(fields[_CHILDREN_FAULTS]), int(fields[_THREADS]), int(fields[_STARTED]),
        )  # fmt: skip
    except (IndexError, ValueError) as error:
        raise ProcessLookupError(os.fsdecode(folder)) from error


def process_stats() -> Iterator[ProcessStat]:
    """Yield the line of each process that this one sees."""
    for name in os.listdir(b"/proc"):
        if name.isdigit():
            with suppress(OSError):
                yield read_process_stat(b"/proc/%b/" % name)
