"""A scan that a person asks for, what it tells meanwhile, and what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.wire.projects import Item
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class ScanOrder(Request):
    """Scan one parent, or all, now: `progress` notices, then `Scanned`."""

    method: ClassVar[str] = "scan"

    parent: str | None = None


class Scanned(TypedDict):
    """What a scan found: new, gone and changed projects, how many in all, and its cost.
    `being_made` counts those that are still being written: they are proposed once they are whole.
    """

    revision: int
    new: list[Item]
    gone: list[Item]
    changed: list[Item]
    projects: int
    folders: int
    seconds: float
    being_made: int
    warnings: list[str]


class Progress(TypedDict):
    """A `progress` notice during a scan."""

    folders: int
    projects: int
    parent: str
