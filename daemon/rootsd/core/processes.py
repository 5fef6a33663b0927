"""The facts about processes and their terminals that the system reports.

Sources for the names of terminals: proc(5), pts(4), Linux's Documentation/admin-guide/devices.txt,
and sys/types.h of macOS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from rootsd.core.labels import safe_label

_PTS_MAJORS = range(136, 144)
_PTS_PER_MAJOR = 256
_CONSOLES_MAJOR = 4
_CONSOLES = 64
_MAC_MAJOR = 16


def terminal_name(device: int) -> str:
    """Return the usual name of a terminal, such as `pts/1`, `tty1`, `ttyS0`, or `ttys001`.

    On Linux, `device` is `tty_nr` of /proc/PID/stat. On macOS, it is the `st_rdev` of the
    terminal. For a device of another kind, the name contains its numbers.
    """
    major, minor = device >> 8 & 0xFF, device & 0xFF | device >> 12 & 0xFFF00
    if major in _PTS_MAJORS:
        return f"pts/{(major - _PTS_MAJORS.start) * _PTS_PER_MAJOR + minor}"
    if device >> 24 == _MAC_MAJOR:
        return f"ttys{device & 0xFFFFFF:03}"
    if major == _CONSOLES_MAJOR:
        return f"tty{minor}" if minor < _CONSOLES else f"ttyS{minor - _CONSOLES}"
    return f"terminal {major}:{minor}"


class ProgramSight(StrEnum):
    """How much rootsd can tell about the executable of a process."""

    SEEN = "seen"
    """Its path was read, or it is known that there is none."""
    OF_ROOT = "of root"
    """The process runs as root, and rootsd does not."""
    OUT_OF_REACH = "out of reach"
    """It belongs to another user, or has rights that rootsd lacks. Only its name is known."""
    HIDDEN = "hidden"
    """It hides itself from the other processes of its user (PR_SET_DUMPABLE in prctl(2))."""


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """The facts about one process.

    * `started`: the start time. It orders processes, and distinguishes two with the same pid.
    * `terminal`: the device number of the controlling terminal, or 0.
    * `markers`: the variables in its environment that a known agent may have set.
    * `folder`: the working directory. It is empty if unknown, or if the process is in another PID
      namespace than the daemon.
    * `program`: the path of the executable. It is empty if unknown. A process can choose its name
      and its arguments, but not this.
    * `sight`: whether `program` could be read, or why not.
    """

    pid: int
    started: int
    parent: int
    name: bytes
    arguments: tuple[bytes, ...] = ()
    terminal: int = 0
    control_group: bytes = b""
    markers: frozenset[str] = frozenset()
    folder: bytes = dataclasses.field(default=b"", compare=False)
    program: bytes = b""
    sight: ProgramSight = ProgramSight.SEEN

    @property
    def key(self) -> tuple[int, int]:
        """Return the pid and the start time, which together are unique until the next boot."""
        return self.pid, self.started


ProcessChain = Sequence[Process]
"""A process, then the process that started it, and so on. The first process of the system is left
out.
"""


class LineageCompleteness(StrEnum):
    """How much of a lineage could be read."""

    COMPLETE = "complete"
    CUT_OFF = "cut off"
    """There are too many ancestors, or too large an environment, for the limits."""
    LATE = "late"
    """The time was over before everything was read."""
    UNAVAILABLE = "unavailable"
    """Nothing was read, because the helper process is missing or does not answer."""


class Lineage(Struct, frozen=True):
    """The facts about a process and its ancestors. It is empty for a process that ended."""

    processes: tuple[Process, ...] = ()
    completeness: LineageCompleteness = LineageCompleteness.COMPLETE

    @property
    def is_complete(self) -> bool:
        """Return whether everything was read."""
        return self.completeness is LineageCompleteness.COMPLETE


class TerminalHolder(Struct, frozen=True):
    """A process that has the master side of a terminal open, so it controls the terminal.

    `displays` are the device numbers of other terminals that it has open. For a multiplexer such
    as tmux, these are the terminals of its clients.
    """

    lineage: Lineage
    displays: tuple[int, ...] = ()


TerminalHolders = Mapping[int, tuple[TerminalHolder, ...]]
"""The holders of terminals, by device number."""


def describe_process(process: Process) -> str:
    """Return the name and the pid of a process, safe to show."""
    return f"{safe_label(process.name)}, pid {process.pid}"
