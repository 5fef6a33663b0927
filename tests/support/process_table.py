"""A table of processes, and a guard that reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from rootsd.control.attempts import AttemptRecorder, AttemptSummary
from rootsd.control.guard import CommandGuard
from rootsd.control.process_view import ProcessView
from rootsd.core.changes import AuditRecord, ChangeVerb
from rootsd.core.errors import CallerRefused
from rootsd.core.guard_setting import Guard
from rootsd.core.processes import Lineage, LineageCompleteness, Process, TerminalHolder
from rootsd.helper.processes import ProcessReport
from rootsd.processes.process_exit import ProcessHandle
from support.sample_decisions import NOON

TERMINAL = 34816
OWN_GROUP = b"/user.slice/app-tab.scope"


def process(pid: int, parent: int, name: str, *arguments: str, **more: object) -> Process:
    """Return a process of an installed program. Its start time follows from its pid.

    The program is the one in the arguments, where these have the path of one.
    """
    words = tuple(word.encode() for word in arguments or (name,))
    path = words[0] if words[0].startswith(b"/") else f"/usr/bin/{name.partition(':')[0]}".encode()
    made = Process(
        pid, pid * 10, parent, name.encode()[:15], words, control_group=OWN_GROUP, program=path
    )
    return replace(made, **more)  # type: ignore[arg-type]


class UnwrittenSummary(AttemptSummary):
    """A summary that is not saved."""

    def _read(self) -> None:
        return None

    def _write(self, _: bytes) -> None:
        return


class FakePeer(ProcessHandle):
    """The process at the other end of a connection."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.gone = False

    def has_gone(self) -> bool:
        return self.gone


class ProcessTable(ProcessView):
    """All processes, and those with an MCP connection.

    With `blind`, no process can be read. `seen_as` is the readable part of a lineage. `holders`
    are the processes that hold a terminal. `shown` is the text written to terminals, unless `dark`
    is set.
    """

    def __init__(self, *processes: Process) -> None:
        self.processes = {each.pid: each for each in processes}
        self.connected: set[int] = set()
        self.blind = False
        self.seen_as: dict[int, LineageCompleteness] = {}
        self.holders: dict[int, tuple[TerminalHolder, ...]] = {}
        self.looks: list[list[int]] = []
        self.shown: list[str] = []
        self.dark = False
        self.seconds = 0.0

    def add(self, *processes: Process) -> None:
        self.processes.update({each.pid: each for each in processes})

    def lineage(self, pid: int) -> tuple[Process, ...]:
        line: list[Process] = []
        while (known := self.processes.get(pid)) is not None:
            line.append(known)
            pid = known.parent
        return tuple(line)

    async def look_up(
        self, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
    ) -> ProcessReport | None:
        pids = sorted({*callers, *others})
        self.looks.append(pids)
        if self.blind:
            return None
        lineages = {
            pid: Lineage(self.lineage(pid), self.seen_as.get(pid, LineageCompleteness.COMPLETE))
            for pid in pids
        }
        return ProcessReport(lineages, self.holders)

    async def show(self, caller: Process, text: str) -> str:
        if self.dark:
            raise CallerRefused("the terminal is stopped")
        self.shown.append(text)
        return "pts/0"

    def word(self) -> str:
        """Return the word of the last challenge."""
        return self.shown[-1].rpartition("Type ")[2].split()[0]

    def guard(self, note: Callable[[AuditRecord], Awaitable[None]]) -> CommandGuard:
        """Return a guard that reads these processes."""

        def recorder(verb: ChangeVerb) -> AttemptRecorder:
            summary = UnwrittenSummary(Path())
            return AttemptRecorder(verb, summary, note, lambda: self.seconds, lambda: NOON)

        return CommandGuard(
            Guard.AGENTS,
            view=self,
            note=note,
            connected=lambda: self.connected,
            now=lambda: NOON,
            refused=recorder(ChangeVerb.REFUSED),
            agent_commands=recorder(ChangeVerb.AGENT_COMMAND),
        )
