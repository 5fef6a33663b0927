"""Who is this caller, and who uses MCP? Both ends of the question, as JSON in between."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from rootsd.core.callers import Process
from rootsd.host.helper.duties import Duty
from rootsd.host.helper.link import Helper
from rootsd.host.lineage import lineages

_SECONDS = 5.0


def ask_lineages(
    helper: Helper, pids: Iterable[int], markers: Collection[str]
) -> dict[int, tuple[Process, ...]]:
    """What `host.lineage.lineages` sees. Raises NoAnswer."""
    question = {"pids": list(pids), "markers": sorted(markers)}
    answered = json.loads(helper.ask(Duty.LINEAGES, json.dumps(question).encode(), _SECONDS))
    return {int(pid): tuple(map(_process, line)) for pid, line in answered.items()}


def answer(question: bytes) -> bytes:
    """In the helper."""
    asked = json.loads(question)
    seen = lineages(asked["pids"], asked["markers"])
    return json.dumps({pid: [_fields(p) for p in line] for pid, line in seen.items()}).encode()


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
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
