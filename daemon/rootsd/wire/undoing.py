"""Decisions that a person takes back, in control requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.deciding import Effect
from rootsd.wire.guarding import LogItem
from rootsd.wire.projects import Item
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class Undo(Request):
    """Take back what event `seq` of the log decided; without one, the newest order of a person
    that was not undone yet, with all it decided: `Undone`."""

    method: ClassVar[str] = "undo"

    seq: int | None = None
    effect: Effect = Effect.APPLY


class Undone(TypedDict):
    """The events that were taken back, oldest first, and the projects that they were about, as
    they are now."""

    revision: int
    undone: list[LogItem]
    items: list[Item]
    warnings: list[str]
