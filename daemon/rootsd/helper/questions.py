"""Encode the helper's questions and answers about processes, terminals, and projects.

Which of these folders is somebody at work on? Both ends of the question.

The question who a caller is and who uses MCP: both ends of it, with JSON in between.

What is there to see of these projects, and of this one's history? Both ends of the questions.

The first is answered by our own readers, which cannot hang but on a dead file system, for many
projects at once. The second by libgit2, for one, and only where our readers found nothing odd.

Shows text on a caller's terminal: both ends of it, with JSON in between.

The daemon cannot do it: its confinement lets it write nothing but its own folders.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rootsd.core.guard import (
    Lineage,
    LineageCompleteness,
    Process,
    TerminalHolder,
    TerminalHolders,
    terminal_name,
)
from rootsd.core.model import ProjectKind
from rootsd.helper.client import Helper, NoAnswer, NoHelper
from rootsd.helper.protocol import HelperTask
from rootsd.system.process_tree import BareProcessReader, ProcessReader
from rootsd.system.processes import folders_in_use
from rootsd.system.terminals import TerminalWriteFailed, terminal_holders, write_to_terminal

_FOLDERS_IN_USE_S = 5.0


def ask_folders_in_use(helper: Helper, folders: Collection[bytes]) -> frozenset[bytes]:
    """Those of `folders` that a process of ours is making (host.processes).

    Without a helper none, and quiet times alone decide; where it could not tell this time, all.
    """
    try:
        return _split_paths(helper.ask(HelperTask.AT_WORK, b"\0".join(folders), _FOLDERS_IN_USE_S))
    except NoHelper:
        return frozenset()
    except NoAnswer:
        return frozenset(folders)


def answer_folders_in_use(question: bytes) -> bytes:
    """In the helper: NUL-separated paths in and out."""
    return b"\0".join(folders_in_use(_split_paths(question)))


def _split_paths(joined: bytes) -> frozenset[bytes]:
    return frozenset(joined.split(b"\0")) if joined else frozenset()


_PROCESSES_S = 3.0
_BARE_PROCESSES_S = 2.0


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What one look saw: the lineages by pid, and the holders of the first caller's terminal."""

    lineages: dict[int, Lineage] = field(default_factory=dict)
    terminals: TerminalHolders = field(default_factory=dict)


def ask_processes(
    helper: Helper, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
) -> ProcessReport:
    """Return what the helper sees of `callers`, of their terminals, and then of `others`.

    Raises NoAnswer.
    """
    question = {"callers": callers, "others": others, "markers": sorted(markers)}
    return _process_report(
        helper.ask(HelperTask.LINEAGES, json.dumps(question).encode(), _PROCESSES_S)
    )


def ask_bare_processes(helper: Helper, callers: Sequence[int]) -> ProcessReport:
    """Return what the helper sees of `callers` without reading anything that another process can
    delay. Raises NoAnswer."""
    question = {"callers": callers, "others": [], "markers": None}
    return _process_report(
        helper.ask(HelperTask.LINEAGES, json.dumps(question).encode(), _BARE_PROCESSES_S)
    )


def answer_processes(question: bytes) -> bytes:
    """Look, in the helper."""
    asked = json.loads(question)
    is_bare = asked["markers"] is None
    look = BareProcessReader() if is_bare else ProcessReader(asked["markers"])
    # The caller comes first: whatever the others do to be slow, it was looked at before.
    seen = {pid: look.lineage(pid) for pid in asked["callers"]}
    terminals: dict[int, tuple[TerminalHolder, ...]] = {}
    for pid, lineage in seen.items():
        if lineage.processes and lineage.processes[0].terminal and not is_bare:
            terminals.update(terminal_holders(pid, lineage.processes[0].terminal, look))
            if look.is_late:  # not all holders were seen
                seen[pid] = Lineage(lineage.processes, LineageCompleteness.LATE)
    # What their environments hold decides nothing, and may take long to read.
    further = ProcessReader((), look.limits)
    seen |= {pid: further.lineage(pid) for pid in asked["others"] if pid not in seen}
    return json.dumps(
        {
            "lineages": {pid: _lineage_fields(lineage) for pid, lineage in seen.items()},
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
    told = json.loads(answered)
    return ProcessReport(
        {int(pid): _lineage(fields) for pid, fields in told["lineages"].items()},
        {
            int(device): tuple(
                TerminalHolder(_lineage(each["lineage"]), tuple(each["displays"]))
                for each in holders
            )
            for device, holders in told["terminals"].items()
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
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


Facts = dict[str, Any]

MOST_AT_ONCE = 16
_SECONDS_EACH = 2.0
_SECONDS_OF_HISTORY = 2.0
_SEPARATOR = b"\0"
# Never part of a file name.
_BETWEEN_NAMES = b"/"


class ProjectQuery(NamedTuple):
    """A project to be described; `project_files` are the changes to the built-in ones that the
    configuration makes there."""

    path: bytes
    kind: ProjectKind
    project_files: tuple[bytes, ...] = ()


def parse_project_queries(question: bytes) -> list[ProjectQuery]:
    """The projects that a question of `ask_facts` is about."""
    parts = iter(question.split(_SEPARATOR))
    return [
        ProjectQuery(
            path, ProjectKind(kind.decode()), tuple(filter(None, files.split(_BETWEEN_NAMES)))
        )
        for kind, files, path in zip(parts, parts, parts, strict=True)
    ]


def ask_facts(helper: Helper, projects: Sequence[ProjectQuery]) -> list[Facts | None]:
    """The facts of each project, in order; None where they could not be had in time.

    Where one of many keeps the answer away, each is asked for alone.
    """
    if not projects:
        return []
    question = _SEPARATOR.join(
        part
        for path, kind, files in projects
        for part in (kind.encode(), _BETWEEN_NAMES.join(files), path)
    )
    try:
        answer = helper.ask(HelperTask.FACTS, question, _SECONDS_EACH + 0.5 * len(projects))
        found: list[Facts | None] = json.loads(answer)
    except NoAnswer:
        if len(projects) == 1:
            return [None]
        return [each for project in projects for each in ask_facts(helper, [project])]
    return found


def ask_last_commit(helper: Helper, path: bytes) -> Facts | None:
    """The commit that is checked out; None where there is none or it could not be had in time."""
    try:
        found: Facts | None = json.loads(helper.ask(HelperTask.HISTORY, path, _SECONDS_OF_HISTORY))
    except NoAnswer:
        return None
    return found


_SHOW_TEXT_S = 2.0


def ask_to_write_terminal(helper: Helper, caller: Process, text: str) -> str:
    """Have `text` shown on the controlling terminal of `caller`; return the terminal's name.

    Raises NotShown and NoAnswer.
    """
    question = {
        "pid": caller.pid,
        "started": caller.started,
        "terminal": caller.terminal,
        "text": text,
    }
    why = json.loads(helper.ask(HelperTask.SHOWING, json.dumps(question).encode(), _SHOW_TEXT_S))
    if why is not None:
        raise TerminalWriteFailed(why)
    return terminal_name(caller.terminal)


def answer_write_terminal(question: bytes) -> bytes:
    """Show it, in the helper. The answer is null, or why it was not shown."""
    asked = json.loads(question)
    text = asked["text"].encode("utf-8", "backslashreplace")
    why = None
    try:
        write_to_terminal(asked["pid"], asked["started"], asked["terminal"], text)
    except TerminalWriteFailed as error:
        why = str(error)
    return json.dumps(why).encode()
