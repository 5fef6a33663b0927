"""How discovery stands, in values for `status`, `scan` and `up`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rootsd.core.model import Coverage


class ParentState(Enum):
    """How changes below a parent come to be known."""

    SCANNING = "scanning"
    WATCHED = "watched"
    POLLED = "polled"
    MISSING = "missing"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ParentReport:
    """One parent. `reason` and `remedy` say why it is not simply watched, and what to do."""

    path: bytes
    state: ParentState
    coverage: Coverage
    folders: int
    projects: int
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class DiscoveryStatus:
    """All parents; `watches` are the kernel's, `being_made` projects not yet whole."""

    parents: tuple[ParentReport, ...] = ()
    watches: int = 0
    being_made: int = 0


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """How far the scan of one parent is."""

    parent: bytes
    folders: int
    projects: int


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """What one scan changed, and what it went through. `seconds` is wall time."""

    new: int
    gone: int
    changed: int
    folders: int
    projects: int
    seconds: float
