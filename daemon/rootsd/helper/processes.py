"""Ask the helper about processes and the holders of their terminals."""

from __future__ import annotations

from msgspec import Struct, field

from rootsd.core.processes import Lineage, LineageCompleteness, TerminalHolder, TerminalHolders
from rootsd.helper.client import Helper, ask_typed
from rootsd.helper.protocol import HelperTask, typed_answer
from rootsd.processes.process_tree import BareProcessReader, ProcessReader
from rootsd.processes.terminals import terminal_holders

_PROCESSES_S = 3.0
_BARE_PROCESSES_S = 2.0


class ProcessQuestion(Struct, frozen=True):
    """The processes to read. `markers` is None for a read that no other process can delay."""

    callers: tuple[int, ...]
    others: tuple[int, ...] = ()
    markers: frozenset[str] | None = None


class ProcessReport(Struct, frozen=True):
    """The lineages of processes by pid, and the holders of the callers' terminals by device."""

    lineages: dict[int, Lineage] = field(default_factory=dict)
    terminals: TerminalHolders = field(default_factory=dict)


def ask_processes(helper: Helper, question: ProcessQuestion) -> ProcessReport:
    """Return the lineages of the callers with their terminals, and the lineages of the others.

    Raises NoAnswer.
    """
    timeout_s = _BARE_PROCESSES_S if question.markers is None else _PROCESSES_S
    return ask_typed(helper, HelperTask.PROCESSES, question, timeout_s, ProcessReport)


@typed_answer
def answer_processes(question: ProcessQuestion) -> ProcessReport:
    """Read the processes that the question names."""
    is_bare = question.markers is None
    reader = BareProcessReader() if question.markers is None else ProcessReader(question.markers)
    # Callers come first, so that no other process can delay reading them.
    lineages = {pid: reader.lineage(pid) for pid in question.callers}
    terminals: dict[int, tuple[TerminalHolder, ...]] = {}
    for pid, lineage in lineages.items():
        if lineage.processes and lineage.processes[0].terminal and not is_bare:
            terminals.update(terminal_holders(pid, lineage.processes[0].terminal, reader))
            if reader.is_late:  # so some holders may be missing
                lineages[pid] = Lineage(lineage.processes, LineageCompleteness.LATE)
    # No decision depends on the environments of the others, and reading them can take long.
    other_reader = ProcessReader((), reader.budget)
    others = (pid for pid in question.others if pid not in lineages)
    lineages |= {pid: other_reader.lineage(pid) for pid in others}
    return ProcessReport(lineages, terminals)
