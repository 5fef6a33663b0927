"""The question who a caller is and who uses MCP: both ends of it, with JSON in between."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from rootsd.core.callers import Completeness, Holder, Lineage, Process, Terminals
from rootsd.host.helper.duties import Duty
from rootsd.host.helper.link import Helper
from rootsd.host.lineage import BareLook, Look
from rootsd.host.terminals import holders_of

_SECONDS = 3.0
_BARE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one look saw: the lineages by pid, and the holders of the first caller's terminal."""

    lineages: dict[int, Lineage] = field(default_factory=dict)
    terminals: Terminals = field(default_factory=dict)


def ask_sighting(
    helper: Helper, callers: Sequence[int], others: Sequence[int], markers: Collection[str]
) -> Sighting:
    """Return what the helper sees of `callers`, of their terminals, and then of `others`.

    Raises NoAnswer.
    """
    question = {"callers": callers, "others": others, "markers": sorted(markers)}
    return _sighting(helper.ask(Duty.LINEAGES, json.dumps(question).encode(), _SECONDS))


def ask_bare_sighting(helper: Helper, callers: Sequence[int]) -> Sighting:
    """Return what the helper sees of `callers` without reading anything that another process can
    delay. Raises NoAnswer."""
    question = {"callers": callers, "others": [], "markers": None}
    return _sighting(helper.ask(Duty.LINEAGES, json.dumps(question).encode(), _BARE_SECONDS))


def answer(question: bytes) -> bytes:
    """Look, in the helper."""
    asked = json.loads(question)
    is_bare = asked["markers"] is None
    look = BareLook() if is_bare else Look(asked["markers"])
    # The caller comes first: whatever the others do to be slow, it was looked at before.
    seen = {pid: look.lineage(pid) for pid in asked["callers"]}
    terminals: dict[int, tuple[Holder, ...]] = {}
    for pid, lineage in seen.items():
        if lineage.processes and lineage.processes[0].terminal and not is_bare:
            terminals.update(holders_of(pid, lineage.processes[0].terminal, look))
            if look.is_late:  # not all holders were seen
                seen[pid] = Lineage(lineage.processes, Completeness.LATE)
    # What their environments hold decides nothing, and may take long to read.
    further = Look((), look.limits)
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


def _sighting(answered: bytes) -> Sighting:
    told = json.loads(answered)
    return Sighting(
        {int(pid): _lineage(fields) for pid, fields in told["lineages"].items()},
        {
            int(device): tuple(
                Holder(_lineage(each["lineage"]), tuple(each["displays"])) for each in holders
            )
            for device, holders in told["terminals"].items()
        },
    )


def _lineage_fields(lineage: Lineage) -> dict[str, Any]:
    processes = [_fields(process) for process in lineage.processes]
    return {"processes": processes, "completeness": lineage.completeness.value}


def _lineage(fields: dict[str, Any]) -> Lineage:
    return Lineage(tuple(map(_process, fields["processes"])), Completeness(fields["completeness"]))


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
