"""Ask the helper about processes, terminals, and projects, and answer in a worker.

Each `ask_` function runs in the daemon, and each `answer_` function in a worker. `project_facts`
has the answers that need libgit2.

`ask_facts` covers many projects at once. The worker answers with our own bounded readers, which
can hang only on a dead file system. `ask_last_commit` and `ask_tracking` cover one repository and
use libgit2. Call them only if our readers found nothing suspicious in the repository.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from rootsd.core.model import ProjectKind
from rootsd.core.processes import (
    Lineage,
    LineageCompleteness,
    Process,
    TerminalHolder,
    TerminalHolders,
    terminal_name,
)
from rootsd.core.record import BadRecord
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.client import Helper, NoAnswer, NoHelper
from rootsd.helper.protocol import Answer, HelperTask, typed_answer
from rootsd.processes.activity import folders_in_use, folders_of_tools
from rootsd.processes.process_tree import BareProcessReader, ProcessReader
from rootsd.processes.terminals import TerminalWriteFailed, terminal_holders, write_to_terminal
from rootsd.vcs.facts import CollectedFacts, CollectedRisks
from rootsd.wire.projects import LastCommitItem, TrackingFacts

_FOLDERS_IN_USE_S = 5.0


def _ask(
    helper: Helper, task: HelperTask, question: object, seconds: float, kind: type[Answer]
) -> Answer:
    """Return the answer, a value of type `kind`. Raises NoAnswer."""
    answer = helper.ask(task, encode_typed(question), seconds)
    try:
        return decode_typed(answer, kind)
    except BadRecord as error:
        raise NoAnswer(f"the helper gave no valid answer: {error}") from error


def ask_folders_in_use(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Return the ones of `folders` to which a process of this user writes (processes.activity).

    Without a helper, return none. Discovery then waits for a quiet period instead. If the helper
    has no answer this time, return all of them.
    """
    return _ask_for_folders(helper, HelperTask.FOLDERS_IN_USE, folders)


def ask_folders_of_tools(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Return the ones of `folders` in which a VCS or copy tool works, as `ask_folders_in_use`."""
    return _ask_for_folders(helper, HelperTask.FOLDERS_OF_TOOLS, folders)


def _ask_for_folders(
    helper: Helper, task: HelperTask, folders: Collection[bytes]
) -> frozenset[bytes]:
    try:
        return _ask(helper, task, frozenset(folders), _FOLDERS_IN_USE_S, frozenset[bytes])
    except NoHelper:
        return frozenset()
    except NoAnswer:
        return frozenset(folders)


@typed_answer
def answer_folders_in_use(question: frozenset[bytes]) -> frozenset[bytes]:
    """Return the ones of these folders that are in use."""
    return folders_in_use(question)


@typed_answer
def answer_folders_of_tools(question: frozenset[bytes]) -> frozenset[bytes]:
    """Return the ones of these folders in which a tool works."""
    return folders_of_tools(question)


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


def ask_processes(
    helper: Helper, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
) -> ProcessReport:
    """Return the lineages of `callers` with their terminals, and the lineages of `others`.

    Raises NoAnswer.
    """
    question = ProcessQuestion(tuple(callers), tuple(others), frozenset(markers))
    return _ask(helper, HelperTask.PROCESSES, question, _PROCESSES_S, ProcessReport)


def ask_bare_processes(helper: Helper, callers: Sequence[int]) -> ProcessReport:
    """Return the lineages of `callers`, without any read that another process can delay.

    Raises NoAnswer.
    """
    question = ProcessQuestion(tuple(callers))
    return _ask(helper, HelperTask.PROCESSES, question, _BARE_PROCESSES_S, ProcessReport)


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


MAX_PROJECTS_PER_QUESTION = 16
_FACTS_S = 2.0
_LAST_COMMIT_S = 2.0
_TRACKING_S = 2.0
RISKS_SOFT_S = 0.1
"""A worker that has read the risks of projects for so long answers with those that it has."""


class ProjectQuery(NamedTuple):
    """A project to collect facts about.

    `project_files` are the configured changes to the built-in list of project files.
    """

    path: bytes
    kind: ProjectKind
    project_files: tuple[bytes, ...] = ()


def ask_facts(helper: Helper, projects: Sequence[ProjectQuery]) -> list[CollectedFacts | None]:
    """Return the facts of each project in order, with None where the answer is late.

    If a question about several projects gets no answer, ask about each project separately.
    """
    if not projects:
        return []
    seconds = _FACTS_S + 0.5 * len(projects)
    try:
        return [*_ask(helper, HelperTask.FACTS, projects, seconds, list[CollectedFacts])]
    except NoAnswer:
        if len(projects) == 1:
            return [None]
        return [each for project in projects for each in ask_facts(helper, [project])]


def ask_risks(
    helper: Helper, projects: Sequence[ProjectQuery], seconds: float
) -> list[CollectedRisks]:
    """Return the risks of the first of these projects, in order: of at least one, or of all.

    Raises NoAnswer.
    """
    return _ask(helper, HelperTask.RISKS, projects, seconds, list[CollectedRisks])


def ask_last_commit(helper: Helper, path: bytes) -> LastCommitItem | None:
    """Return the commit that is checked out, or None if there is none or the answer is late."""
    try:
        return _ask(
            helper,
            HelperTask.LAST_COMMIT,
            path,
            _LAST_COMMIT_S,
            LastCommitItem | None,  # type: ignore[arg-type] # a union, too, is a type to msgspec
        )
    except NoAnswer:
        return None


def ask_tracking(helper: Helper, path: bytes) -> TrackingFacts:
    """Return upstream, ahead, behind, and remotes of a repository; empty if the answer is late.

    Counting commits can take long in a large history. It is a question of its own, so that the
    last commit is known even then.
    """
    try:
        return _ask(helper, HelperTask.TRACKING, path, _TRACKING_S, TrackingFacts)
    except NoAnswer:
        return {}


_SHOW_TEXT_S = 2.0


class TerminalText(Struct, frozen=True):
    """A text for the controlling terminal of a process."""

    caller: Process
    text: str


def ask_to_write_terminal(helper: Helper, caller: Process, text: str) -> str:
    """Write `text` to the controlling terminal of `caller`, and return the terminal's name.

    The daemon's own confinement does not let it open a terminal. Raises TerminalWriteFailed and
    NoAnswer.
    """
    question = TerminalText(caller, text)
    if why := _ask(helper, HelperTask.WRITE_TERMINAL, question, _SHOW_TEXT_S, str):
        raise TerminalWriteFailed(why)
    return terminal_name(caller.terminal)


@typed_answer
def answer_write_terminal(question: TerminalText) -> str:
    """Write the text. Return the reason if the write failed, or an empty text."""
    text = question.text.encode("utf-8", "backslashreplace")
    caller = question.caller
    try:
        write_to_terminal(caller.pid, caller.started, caller.terminal, text)
    except TerminalWriteFailed as error:
        return str(error)
    return ""
