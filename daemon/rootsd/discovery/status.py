"""Describe the state of each parent and the result of a scan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from functools import cache

from rootsd.core.model import ScanCoverage
from rootsd.discovery.parent_tree import ParentTree
from rootsd.watch.events import WatchOutcome
from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit, sysctl_to_raise

_RESTART = "rootsd down and rootsd up"


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
    coverage: ScanCoverage
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
    """What one scan changed, and what it went through. `seconds` is wall time; `being_made`
    are the projects, in all parents, that are not seen to be whole yet, reported before or not."""

    new: int
    gone: int
    changed: int
    folders: int
    projects: int
    seconds: float
    being_made: frozenset[bytes]


def report_for(territory: ParentTree, *, scanning: bool) -> ParentReport:
    """How one parent stands."""
    state, reason, remedy = (ParentState.SCANNING, "", "") if scanning else _state_of(territory)
    return ParentReport(
        path=territory.parent.path,
        state=state,
        coverage=territory.coverage,
        folders=len(territory),
        projects=territory.count_projects(),
        reason=reason,
        remedy=remedy,
    )


def _state_of(territory: ParentTree) -> tuple[ParentState, str, str]:
    if territory.limit is WatchOutcome.SILENT:
        return ParentState.UNREADABLE, "its file system does not answer", ""
    path = os.fsdecode(territory.parent.path)
    if territory.coverage is ScanCoverage.NONE:
        if territory.is_there:
            return ParentState.UNREADABLE, "it cannot be read", f"chmod u+rx {path}"
        return ParentState.MISSING, "it is not there", f"rootsd parent rm {path}"
    match territory.limit:
        case WatchOutcome.LIMIT:
            reason = "the limit of inotify watches is reached; changes show with a delay"
            return ParentState.POLLED, reason, _raise_limit_command(InotifyLimit.WATCHES)
        case WatchOutcome.NO_INSTANCE:
            reason = "all inotify instances are in use; changes show with a delay"
            return ParentState.POLLED, reason, _raise_limit_command(InotifyLimit.INSTANCES)
        case WatchOutcome.FAILED:
            reason = "not all in it could be watched; changes show with a delay"
            return ParentState.POLLED, reason, _RESTART
        case WatchOutcome.UNSUPPORTED:
            return ParentState.POLLED, "its file system tells of no changes made elsewhere", ""
        case _:
            return ParentState.WATCHED, "", ""


# Not read anew with each status, nor once somebody did as it says.
@cache
def _raise_limit_command(limit: InotifyLimit) -> str:
    return f"sudo sysctl {sysctl_to_raise(limit, read_inotify_limit(limit))}, then {_RESTART}"
