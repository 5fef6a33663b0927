"""A batch groups events by the work that they cause, and merges events about one entry."""

from __future__ import annotations

from rootsd.discovery.event_batch import EventBatch
from rootsd.watch.events import EventOverflow, FileEvent, FileEventKind, WatchPurpose

CAME, LEFT, ITSELF = FileEventKind.ADDED, FileEventKind.REMOVED, FileEventKind.SELF


def _frontier(name: bytes, change: FileEventKind, moved: bool = False) -> FileEvent:
    return FileEvent(b"/w", name, change, WatchPurpose.FRONTIER, moved)


def _of(*batch: FileEvent | EventOverflow) -> EventBatch:
    return EventBatch.of(batch, lambda changed: changed == b"/home/src")


def test_events_of_one_entry_are_merged_and_a_removal_is_kept() -> None:
    batch = [_frontier(b"a", CAME), _frontier(b"a", LEFT), _frontier(b"a", CAME, moved=True)]
    assert _of(*batch, *batch).entries == {(b"/w", b"a"): (True, True)}
    assert _of(*batch, _frontier(b"a", LEFT)).entries == {(b"/w", b"a"): (True, False)}


def test_events_are_grouped_by_the_purpose_of_the_watch() -> None:
    at_work = FileEvent(b"/w/.git", b"HEAD", CAME, WatchPurpose.PROGRESS)
    hints = _of(
        at_work,
        EventOverflow(),
        FileEvent(b"/w/.git/worktrees", b"a", CAME, WatchPurpose.LINKS),
        FileEvent(b"/r", b"", ITSELF, WatchPurpose.ROOT),
        FileEvent(b"/r2", b".mcp.json", CAME, WatchPurpose.ROOT),
        FileEvent(b"/r3", b".jj", CAME, WatchPurpose.ROOT),
        _frontier(b"", ITSELF),
        FileEvent(b"/home", b"src", CAME, WatchPurpose.ABOVE),
        FileEvent(b"/etc", b"other", CAME, WatchPurpose.ABOVE),
    )
    assert hints.progress == [at_work]
    assert hints.overflow
    assert list(hints.links) == [b"/w/.git/worktrees"]
    assert list(hints.folders) == [b"/r", b"/r2", b"/w", b"/home"]
    assert list(hints.tops) == [b"/r3"]
    assert hints.entries == {}


def test_only_what_was_moved_brings_mounts() -> None:
    assert not _of(_frontier(b"a", CAME), _frontier(b"b", LEFT)).may_bring_mounts
    assert not _of(FileEvent(b"/home", b"src", CAME, WatchPurpose.ABOVE)).may_bring_mounts
    at_work = FileEvent(b"/w/.git", b"HEAD", CAME, WatchPurpose.PROGRESS, moved=True)
    assert not _of(at_work).may_bring_mounts
    assert _of(_frontier(b"a", CAME, moved=True), _frontier(b"a", LEFT)).may_bring_mounts
    assert _of(FileEvent(b"/home", b"src", CAME, WatchPurpose.ABOVE, moved=True)).may_bring_mounts
    assert _of(EventOverflow()).may_bring_mounts


def test_what_was_removed_and_what_changed_itself_may_have_moved_away() -> None:
    assert not _of(_frontier(b"a", CAME), _frontier(b"b", FileEventKind.MODIFIED)).departed()
    assert _of(_frontier(b"a", LEFT)).departed() == {b"/w/a"}
    assert _of(FileEvent(b"/home", b"src", LEFT, WatchPurpose.ABOVE)).departed() == {b"/home"}
