"""Ask the helper about processes, terminals, and projects, and answer in a worker.

Each `ask_` function runs in the daemon, and each `answer_` function in a worker. A pair of them
defines the encoding of one question. `project_facts` has the answers that need libgit2.

`ask_facts` covers many projects at once. The worker answers with our own bounded readers, which
can hang only on a dead file system. `ask_last_commit` and `ask_tracking` cover one repository and
use libgit2. Call them only if our readers found nothing suspicious in the repository.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, field

from rootsd.core.model import ProjectKind
from rootsd.core.processes import (
    Lineage,
    LineageCompleteness,
    Process,
    ProgramSight,
    TerminalHolder,
    TerminalHolders,
    terminal_name,
)
from rootsd.helper.client import Helper, NoAnswer, NoHelper
from rootsd.helper.protocol import HelperTask
from rootsd.processes.activity import folders_in_use, folders_of_tools
from rootsd.processes.process_tree import BareProcessReader, ProcessReader
from rootsd.processes.terminals import TerminalWriteFailed, terminal_holders, write_to_terminal

_FOLDERS_IN_USE_S = 5.0


def ask_folders_in_use(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Return the ones of `folders` to which a process of this user writes (system.processes).

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
        return _split_paths(helper.ask(task, b"\0".join(folders), _FOLDERS_IN_USE_S))
    except NoHelper:
        return frozenset()
    except NoAnswer:
        return frozenset(folders)


def answer_folders_in_use(question: bytes) -> bytes:
    """Take and return paths separated by NUL."""
    return b"\0".join(folders_in_use(_split_paths(question)))


def answer_folders_of_tools(question: bytes) -> bytes:
    """Take and return paths separated by NUL."""
    return b"\0".join(folders_of_tools(_split_paths(question)))


def _split_paths(joined: bytes) -> frozenset[bytes]:
    return frozenset(joined.split(b"\0")) if joined else frozenset()


_PROCESSES_S = 3.0
_BARE_PROCESSES_S = 2.0


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
    question = {"callers": callers, "others": others, "markers": sorted(markers)}
    return _process_report(
        helper.ask(HelperTask.PROCESSES, json.dumps(question).encode(), _PROCESSES_S)
    )


def ask_bare_processes(helper: Helper, callers: Sequence[int]) -> ProcessReport:
    """Return the lineages of `callers`, without any read that another process can delay.

    Raises NoAnswer.
    """
    question = {"callers": callers, "others": [], "markers": None}
    return _process_report(
        helper.ask(HelperTask.PROCESSES, json.dumps(question).encode(), _BARE_PROCESSES_S)
    )


def answer_processes(question: bytes) -> bytes:
    """Read the processes that the question names."""
    query = json.loads(question)
    is_bare = query["markers"] is None
    reader = BareProcessReader() if is_bare else ProcessReader(query["markers"])
    # Callers come first, so that no other process can delay reading them.
    lineages = {pid: reader.lineage(pid) for pid in query["callers"]}
    terminals: dict[int, tuple[TerminalHolder, ...]] = {}
    for pid, lineage in lineages.items():
        if lineage.processes and lineage.processes[0].terminal and not is_bare:
            terminals.update(terminal_holders(pid, lineage.processes[0].terminal, reader))
            if reader.is_late:  # so some holders may be missing
                lineages[pid] = Lineage(lineage.processes, LineageCompleteness.LATE)
    # No decision depends on the environments of the others, and reading them can take long.
    other_reader = ProcessReader((), reader.budget)
    lineages |= {pid: other_reader.lineage(pid) for pid in query["others"] if pid not in lineages}
    return json.dumps(
        {
            "lineages": {pid: _lineage_fields(lineage) for pid, lineage in lineages.items()},
            "terminals": {
                device: [
                    {"lineage": _lineage_fields(each.lineage), "displays": each.displays}
                    for each in holders
                ]
                for device, holders in terminals.items()
            },
        }
    ).encode()


def _process_report(answered: bytes) -> ProcessReport:
    reported = json.loads(answered)
    return ProcessReport(
        {int(pid): _lineage(fields) for pid, fields in reported["lineages"].items()},
        {
            int(device): tuple(
                TerminalHolder(_lineage(each["lineage"]), tuple(each["displays"]))
                for each in holders
            )
            for device, holders in reported["terminals"].items()
        },
    )


def _lineage_fields(lineage: Lineage) -> dict[str, Any]:
    processes = [_fields(process) for process in lineage.processes]
    return {"processes": processes, "completeness": lineage.completeness.value}


def _lineage(fields: dict[str, Any]) -> Lineage:
    return Lineage(
        tuple(map(_process, fields["processes"])), LineageCompleteness(fields["completeness"])
    )


def _fields(process: Process) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "started": process.started,
        "parent": process.parent,
        "name": _text(process.name),
        "arguments": [_text(argument) for argument in process.arguments],
        "terminal": process.terminal,
        "control_group": _text(process.control_group),
        "markers": sorted(process.markers),
        "folder": _text(process.folder),
        "program": _text(process.program),
        "sight": process.sight.value,
    }


def _process(fields: dict[str, Any]) -> Process:
    return Process(
        pid=fields["pid"],
        started=fields["started"],
        parent=fields["parent"],
        name=_bytes(fields["name"]),
        arguments=tuple(map(_bytes, fields["arguments"])),
        terminal=fields["terminal"],
        control_group=_bytes(fields["control_group"]),
        markers=frozenset(fields["markers"]),
        folder=_bytes(fields["folder"]),
        program=_bytes(fields["program"]),
        sight=ProgramSight(fields["sight"]),
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


Facts = dict[str, Any]

MAX_PROJECTS_PER_QUESTION = 16
_FACTS_S = 2.0
_LAST_COMMIT_S = 2.0
_TRACKING_S = 2.0
RISKS_SOFT_S = 0.1
"""A worker that has read the risks of projects for so long answers with those that it has."""
_SEPARATOR = b"\0"
# A character that no file name contains.
_BETWEEN_NAMES = b"/"


class ProjectQuery(NamedTuple):
    """A project to collect facts about.

    `project_files` are the configured changes to the built-in list of project files.
    """

    path: bytes
    kind: ProjectKind
    project_files: tuple[bytes, ...] = ()


def parse_project_queries(question: bytes) -> list[ProjectQuery]:
    """Return the projects in a question of `ask_facts`."""
    parts = iter(question.split(_SEPARATOR))
    return [
        ProjectQuery(
            path, ProjectKind(kind.decode()), tuple(filter(None, files.split(_BETWEEN_NAMES)))
        )
        for kind, files, path in zip(parts, parts, parts, strict=True)
    ]


def ask_facts(helper: Helper, projects: Sequence[ProjectQuery]) -> list[Facts | None]:
    """Return the facts of each project in order, with None where the answer is late.

    If a question about several projects gets no answer, ask about each project separately.
    """
    if not projects:
        return []
    question = _encode_projects(projects)
    try:
        answer = helper.ask(HelperTask.FACTS, question, _FACTS_S + 0.5 * len(projects))
        found: list[Facts | None] = json.loads(answer)
    except NoAnswer:
        if len(projects) == 1:
            return [None]
        return [each for project in projects for each in ask_facts(helper, [project])]
    return found


def _encode_projects(projects: Sequence[ProjectQuery]) -> bytes:
    """Encode what `parse_project_queries` decodes."""
    return _SEPARATOR.join(
        part
        for path, kind, files in projects
        for part in (kind.encode(), _BETWEEN_NAMES.join(files), path)
    )


def ask_risks(helper: Helper, projects: Sequence[ProjectQuery], seconds: float) -> list[Facts]:
    """Return the risks of the first of these projects, in order: of at least one, or of all.

    Raises NoAnswer.
    """
    answer = helper.ask(HelperTask.RISKS, _encode_projects(projects), seconds)
    found: list[Facts] = json.loads(answer)
    return found


def ask_last_commit(helper: Helper, path: bytes) -> Facts | None:
    """Return the commit that is checked out, or None if there is none or the answer is late."""
    try:
        found: Facts | None = json.loads(helper.ask(HelperTask.LAST_COMMIT, path, _LAST_COMMIT_S))
    except NoAnswer:
        return None
    return found


def ask_tracking(helper: Helper, path: bytes) -> Facts:
    """Return upstream, ahead, behind, and remotes of a repository; empty if the answer is late.

    Counting commits can take long in a large history. It is a question of its own, so that the
    last commit is known even then.
    """
    try:
        found: Facts = json.loads(helper.ask(HelperTask.TRACKING, path, _TRACKING_S))
    except NoAnswer:
        return {}
    return found


_SHOW_TEXT_S = 2.0


def ask_to_write_terminal(helper: Helper, caller: Process, text: str) -> str:
    """Write `text` to the controlling terminal of `caller`, and return the terminal's name.

    The daemon's own confinement does not let it open a terminal. Raises TerminalWriteFailed and
    NoAnswer.
    """
    question = {
        "pid": caller.pid,
        "started": caller.started,
        "terminal": caller.terminal,
        "text": text,
    }
    why = json.loads(
        helper.ask(HelperTask.WRITE_TERMINAL, json.dumps(question).encode(), _SHOW_TEXT_S)
    )
    if why is not None:
        raise TerminalWriteFailed(why)
    return terminal_name(caller.terminal)


def answer_write_terminal(question: bytes) -> bytes:
    """Write the text. Return, as JSON, null or the reason why the write failed."""
    query = json.loads(question)
    text = query["text"].encode("utf-8", "backslashreplace")
    why = None
    try:
        write_to_terminal(query["pid"], query["started"], query["terminal"], text)
    except TerminalWriteFailed as error:
        why = str(error)
    return json.dumps(why).encode()
