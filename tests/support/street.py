"""Processes as a table, and a gate before which they stand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from pathlib import Path

from rootsd.app.control.gate import Gate, Lineages
from rootsd.app.control.refusals import Refusals
from rootsd.core.callers import Guard, Process
from rootsd.core.changes import Note
from support.decisions import NOON

INIT = 1
TERMINAL = 34816
OWN_GROUP = b"/user.slice/app-tab.scope"


def process(pid: int, parent: int, name: str, *arguments: str, **more: object) -> Process:
    """A process whose start follows from its pid."""
    words = tuple(word.encode() for word in arguments or (name,))
    made = Process(pid, pid * 10, parent, name.encode()[:15], words, control_group=OWN_GROUP)
    return replace(made, **more)  # type: ignore[arg-type]


class Unwritten(Refusals):
    """Forgotten with the daemon."""

    def _read(self) -> None:
        return None

    def _write(self, _: bytes) -> None:
        return


class Visitor:
    """Who is at the door."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.gone = False

    def has_gone(self) -> bool:
        return self.gone


class Street:
    """All processes there are, and those that hold an MCP connection. `blind`: no helper."""

    def __init__(self, *processes: Process) -> None:
        self.processes = {each.pid: each for each in processes}
        self.connected: set[int] = set()
        self.blind = False
        self.looks: list[list[int]] = []
        self.seconds = 0.0

    def add(self, *processes: Process) -> None:
        self.processes.update({each.pid: each for each in processes})

    def lineage(self, pid: int) -> tuple[Process, ...]:
        line: list[Process] = []
        while (known := self.processes.get(pid)) is not None:
            line.append(known)
            pid = known.parent
        return tuple(line)

    async def look(self, pids: Collection[int], markers: Collection[str]) -> Lineages | None:
        self.looks.append(list(pids))
        if self.blind:
            return None
        return {pid: self.lineage(pid) for pid in pids}

    def gate(self, note: Callable[[Note], Awaitable[None]], guard: Guard = Guard.AGENTS) -> Gate:
        """A gate at which these processes are seen."""
        return Gate(
            guard,
            look=self.look,
            note=note,
            connected=lambda: self.connected,
            clock=lambda: self.seconds,
            now=lambda: NOON,
            refusals=Unwritten(Path()),
        )
