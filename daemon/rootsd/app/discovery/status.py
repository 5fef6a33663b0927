"""How discovery stands, in values for `status`, `scan` and `up`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from functools import cache

from rootsd.app.discovery.territory import Territory
from rootsd.core.parents import Coverage
from rootsd.host.watch.events import Watched
from rootsd.host.watch.limits import Limit, granted, setting_for_more

_AGAIN = "rootsd down and rootsd up"


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
    """What one scan changed, and what it went through. `seconds` is wall time; `being_made`
    are the projects, in all parents, that are not seen to be whole yet, reported before or not."""

    new: int
    gone: int
    changed: int
    folders: int
    projects: int
    seconds: float
    being_made: frozenset[bytes]


def report_on(territory: Territory, *, scanning: bool) -> ParentReport:
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


def _state_of(territory: Territory) -> tuple[ParentState, str, str]:
    if territory.limit is Watched.SILENT:
        return ParentState.UNREADABLE, "its file system does not answer", ""
    path = os.fsdecode(territory.parent.path)
    if territory.coverage is Coverage.NONE:
        if territory.is_there:
            return ParentState.UNREADABLE, "it cannot be read", f"chmod u+rx {path}"
        return ParentState.MISSING, "it is not there", f"rootsd parent rm {path}"
    match territory.limit:
        case Watched.LIMIT:
            reason = "the limit of inotify watches is reached; changes show with a delay"
            return ParentState.POLLED, reason, _raise(Limit.WATCHES)
        case Watched.NO_INSTANCE:
            reason = "all inotify instances are in use; changes show with a delay"
            return ParentState.POLLED, reason, _raise(Limit.INSTANCES)
        case Watched.FAILED:
            reason = "not all in it could be watched; changes show with a delay"
            return ParentState.POLLED, reason, _AGAIN
        case Watched.UNSUPPORTED:
            return ParentState.POLLED, "its file system tells of no changes made elsewhere", ""
        case _:
            return ParentState.WATCHED, "", ""


# Not read anew with each status, nor once somebody did as it says.
@cache
def _raise(limit: Limit) -> str:
    return f"sudo sysctl {setting_for_more(limit, granted(limit))}, then {_AGAIN}"
