"""Describe the state of each parent and the result of a scan."""

from __future__ import annotations

import os
from enum import Enum
from functools import cache

from msgspec import Struct

from rootsd.core.model import ScanCoverage
from rootsd.discovery.parent_tree import ParentTree
from rootsd.watch.events import WatchOutcome
from rootsd.watch.inotify_limits import InotifyLimit, read_inotify_limit, sysctl_to_raise

_RESTART = "rootsd down and rootsd up"


class ParentState(Enum):
    """How rootsd learns of changes below a parent."""

    SCANNING = "scanning"
    WATCHED = "watched"
    POLLED = "polled"
    MISSING = "missing"
    UNREADABLE = "unreadable"


class ParentReport(Struct, frozen=True):
    """The state of one parent.

    `reason` says why the parent is not simply watched, and `remedy` is a command that helps.
    """

    path: bytes
    state: ParentState
    coverage: ScanCoverage
    reason: str = ""
    remedy: str = ""


class ScanCost(Struct, frozen=True):
    """How many folders one scan read, and how long it took."""

    folders: int
    seconds: float


def report_for(tree: ParentTree, *, scanning: bool) -> ParentReport:
    """Return the state of one parent."""
    state, reason, remedy = (ParentState.SCANNING, "", "") if scanning else _state_of(tree)
    return ParentReport(
        path=tree.parent.path,
        state=state,
        coverage=tree.coverage,
        reason=reason,
        remedy=remedy,
    )


def _state_of(tree: ParentTree) -> tuple[ParentState, str, str]:
    if tree.limit is WatchOutcome.UNRESPONSIVE:
        return ParentState.UNREADABLE, "its file system does not answer", ""
    path = os.fsdecode(tree.parent.path)
    if tree.coverage is ScanCoverage.NONE:
        if tree.is_there:
            return ParentState.UNREADABLE, "it cannot be read", f"chmod u+rx {path}"
        return ParentState.MISSING, "it does not exist", f"rootsd parent rm {path}"
    match tree.limit:
        case WatchOutcome.LIMIT:
            reason = "the limit of inotify watches is reached; changes show with a delay"
            return ParentState.POLLED, reason, _raise_limit_command(InotifyLimit.WATCHES)
        case WatchOutcome.NO_INSTANCE:
            reason = "all inotify instances are in use; changes show with a delay"
            return ParentState.POLLED, reason, _raise_limit_command(InotifyLimit.INSTANCES)
        case WatchOutcome.FAILED:
            reason = "some folders in it could not be watched; changes show with a delay"
            return ParentState.POLLED, reason, _RESTART
        case WatchOutcome.UNSUPPORTED:
            return ParentState.POLLED, "its file system reports no changes made elsewhere", ""
        case _:
            return ParentState.WATCHED, "", ""


# Cached, so that the suggested command stays the same after the user has run it.
@cache
def _raise_limit_command(limit: InotifyLimit) -> str:
    return f"sudo sysctl {sysctl_to_raise(limit, read_inotify_limit(limit))}, then {_RESTART}"
