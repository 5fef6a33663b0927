"""Watchers that miss one kind of event, to prove that a stress test notices the loss."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial

from rootsd.watch.events import (
    EventOverflow,
    EventResolver,
    FileEvent,
    FileEventKind,
    FileEvents,
    PostResolver,
    Watcher,
    WatchPurpose,
    resolve_overflow,
)
from rootsd.watch.inotify import InotifyWatcher

# The folder with this name comes after all earlier events: see `support.discovery_process`.
_BARRIER = b"still-"


class Fault(StrEnum):
    """The faults to plant."""

    NONE = "none"
    DEAF_TO_MOVES = "deaf-to-moves"
    DEAF_TO_CHMOD = "deaf-to-chmod"
    NO_OVERFLOW = "no-overflow"
    NO_GUARDS = "no-guards"
    NO_MOUNTS = "no-mounts"
    TRUSTS_THE_INDEX = "trusts-the-index"


class _FaultyWatcher(InotifyWatcher):
    """A watcher that drops one kind of event."""

    def __init__(self, post: PostResolver, deaf_to: Callable[[FileEvent], bool]) -> None:
        def pass_on(signal: EventResolver) -> None:
            post(partial(self._filtered, signal))

        super().__init__(pass_on)
        self._deaf_to = deaf_to

    def _filtered(self, signal: EventResolver) -> FileEvents:
        return tuple(
            reported
            for reported in signal()
            if isinstance(reported, EventOverflow) or not self._deaf_to(reported)
        )


def _is_chmod(reported: FileEvent) -> bool:
    return reported.purpose is WatchPurpose.FRONTIER and reported.kind is FileEventKind.MODIFIED


def make_faulty_watcher(fault: Fault) -> Callable[[PostResolver], Watcher]:
    """Return a factory for this system's watcher with `fault`."""
    match fault:
        case Fault.DEAF_TO_MOVES:
            return lambda post: _FaultyWatcher(
                post, lambda reported: reported.moved and not reported.name.startswith(_BARRIER)
            )
        case Fault.DEAF_TO_CHMOD:
            return lambda post: _FaultyWatcher(post, _is_chmod)
        case Fault.NO_GUARDS:
            guards = (WatchPurpose.ROOT, WatchPurpose.PARENT, WatchPurpose.ABOVE)
            return lambda post: _FaultyWatcher(post, lambda reported: reported.purpose in guards)
        case Fault.NO_OVERFLOW:
            return lambda post: InotifyWatcher(
                lambda signal: None if signal is resolve_overflow else post(signal)
            )
        case Fault.NONE | Fault.NO_MOUNTS | Fault.TRUSTS_THE_INDEX:
            return InotifyWatcher
