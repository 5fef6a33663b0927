"""The FSEvents watcher with a fake stream: the streams that it opens, and its events."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.watch.events import (
    EventOverflow,
    EventResolver,
    FileEvent,
    FileEventKind,
    WatchOutcome,
    WatchPurpose,
)
from rootsd.watch.fsevents import FSEventsWatcher, StreamCallback
from support.repositories import raw

FRONTIER, ROOT = WatchPurpose.FRONTIER, WatchPurpose.ROOT
RENAMED, ROOT_CHANGED, DROPPED = 0x800, 0x20, 0x4
MOUNT, UNMOUNT = 0x40, 0x80


class FakeStream:
    """A stream that records whether it runs."""

    def __init__(self, callback: StreamCallback) -> None:
        self.tell = callback
        self.running = False
        self.refused = False

    def start(self) -> None:
        if self.refused:
            raise SystemError("Cannot start fsevents stream")
        self.running = True

    def stop(self) -> None:
        self.running = False


class FSEventsHarness:
    """A watcher with fake streams, and the resolvers that it posted."""

    def __init__(self) -> None:
        self.streams: dict[bytes, FakeStream] = {}
        self.posted: list[EventResolver] = []
        self.refuses = False
        self.watcher = FSEventsWatcher(self.posted.append, self._open)

    def _open(self, folder: bytes, callback: StreamCallback) -> FakeStream:
        stream = self.streams[folder] = FakeStream(callback)
        stream.refused = self.refuses
        return stream

    def reported(self) -> list[FileEvent | EventOverflow]:
        return [reported for resolver in self.posted for reported in resolver()]


@pytest.fixture
def harness() -> FSEventsHarness:
    return FSEventsHarness()


def test_one_stream_covers_a_parent(harness: FSEventsHarness, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert harness.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.WATCHED
    assert harness.watcher.watch(raw(tmp_path / "sub"), FRONTIER) is WatchOutcome.WATCHED
    assert list(harness.streams) == [raw(tmp_path)]
    assert harness.watcher.count() == 1


def test_streams_start_with_the_watcher_and_later_ones_at_once(
    harness: FSEventsHarness, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    harness.watcher.watch(raw(tmp_path / "a"), FRONTIER)
    assert not harness.streams[raw(tmp_path / "a")].running
    harness.watcher.start()
    harness.watcher.watch(raw(tmp_path / "b"), FRONTIER)
    assert all(stream.running for stream in harness.streams.values())
    harness.watcher.unwatch(raw(tmp_path / "a"), FRONTIER)
    assert not harness.streams[raw(tmp_path / "a")].running
    harness.watcher.stop()
    assert harness.watcher.count() == 0


def test_a_parent_is_not_watched_if_no_stream_starts(
    harness: FSEventsHarness, tmp_path: Path
) -> None:
    harness.watcher.start()
    harness.refuses = True
    assert harness.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.UNSUPPORTED
    assert harness.watcher.count() == 0
    harness.refuses = False
    assert harness.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.WATCHED


def test_a_parent_around_another_stays_watched_if_either_is_removed(
    harness: FSEventsHarness, tmp_path: Path
) -> None:
    inner = tmp_path / "a" / "inner"
    inner.mkdir(parents=True)
    harness.watcher.start()
    for folder in (inner, tmp_path, tmp_path / "a"):
        harness.watcher.watch(raw(folder), FRONTIER)
    assert harness.watcher.count() == 2
    harness.watcher.unwatch(raw(inner), FRONTIER)
    harness.streams[raw(tmp_path)].tell([raw(tmp_path / "a" / "new")], [RENAMED])
    assert harness.reported() == [
        FileEvent(raw(tmp_path / "a"), b"new", FileEventKind.ADDED, FRONTIER)
    ]
    harness.watcher.watch(raw(inner), FRONTIER)
    harness.watcher.unwatch(raw(tmp_path), FRONTIER)
    harness.watcher.unwatch(raw(tmp_path / "a"), FRONTIER)
    assert {path for path, stream in harness.streams.items() if stream.running} >= {raw(inner)}


def test_a_parent_inside_a_removed_one_stays_watched(
    harness: FSEventsHarness, tmp_path: Path
) -> None:
    inner, deep = tmp_path / "a" / "inner", tmp_path / "a" / "inner" / "deep"
    deep.mkdir(parents=True)
    harness.watcher.start()
    for folder in (tmp_path, inner, deep):
        harness.watcher.watch(raw(folder), FRONTIER)
    assert list(harness.streams) == [raw(tmp_path)]
    harness.watcher.unwatch(raw(tmp_path), FRONTIER)
    assert {path: stream.running for path, stream in harness.streams.items()} == {
        raw(tmp_path): False,
        raw(inner): True,
    }
    harness.streams[raw(inner)].tell([raw(deep / "new")], [RENAMED])
    assert harness.reported() == [FileEvent(raw(deep), b"new", FileEventKind.ADDED, FRONTIER)]


@pytest.mark.parametrize(("below", "flag"), [("disk", MOUNT), ("disk", UNMOUNT), (".", DROPPED)])
def test_lost_events_and_a_mount_below_a_parent_are_an_overflow(
    harness: FSEventsHarness, tmp_path: Path, below: str, flag: int
) -> None:
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    harness.streams[raw(tmp_path)].tell([raw(tmp_path / below)], [flag])
    assert harness.reported() == [EventOverflow()]


def test_no_stream_is_opened_above_a_parent(harness: FSEventsHarness, tmp_path: Path) -> None:
    """A stream is recursive: one on `/` would report every change on the machine."""
    assert harness.watcher.watch(b"/", ROOT) is WatchOutcome.UNSUPPORTED
    assert harness.watcher.watch(raw(tmp_path / "none"), FRONTIER) is WatchOutcome.GONE
    assert harness.streams == {}


def test_only_events_in_watched_folders_are_posted(
    harness: FSEventsHarness, tmp_path: Path
) -> None:
    top = raw(tmp_path)
    harness.watcher.watch(top, FRONTIER)
    paths = [top + b"/one", top + b"/one/node_modules/x.js", top + b"/one/src"]
    harness.streams[top].tell(paths, [RENAMED] * 3)
    assert harness.reported() == [FileEvent(top, b"one", FileEventKind.ADDED, FRONTIER)]


def test_in_a_repository_only_markers_are_posted(harness: FSEventsHarness, tmp_path: Path) -> None:
    top, work = raw(tmp_path), tmp_path / "one"
    work.mkdir()
    harness.watcher.watch(top, FRONTIER)
    harness.watcher.watch(raw(work), WatchPurpose.MARKERS)
    harness.streams[top].tell([raw(work / ".jj"), raw(work / "notes")], [RENAMED] * 2)
    assert harness.reported() == [
        FileEvent(raw(work), b".jj", FileEventKind.REMOVED, WatchPurpose.MARKERS)
    ]


def test_a_moved_parent_is_reported_as_itself(harness: FSEventsHarness, tmp_path: Path) -> None:
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    harness.streams[raw(tmp_path)].tell([raw(tmp_path)], [ROOT_CHANGED])
    assert harness.reported() == [FileEvent(raw(tmp_path), b"", FileEventKind.SELF, FRONTIER)]


def test_inside_a_project_being_created_all_events_are_posted(
    harness: FSEventsHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    git = raw(tmp_path / "one" / ".git")
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    harness.watcher.watch(git, WatchPurpose.PROGRESS)
    harness.streams[raw(tmp_path)].tell([git + b"/HEAD"], [RENAMED])
    assert harness.reported() == [
        FileEvent(git, b"HEAD", FileEventKind.ADDED, WatchPurpose.PROGRESS, moved=True)
    ]
    harness.watcher.unwatch(git, WatchPurpose.PROGRESS)
    assert harness.reported() == []


@pytest.mark.needs("linux")
def test_other_systems_have_no_fsevents(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="macOS"):
        FSEventsWatcher(FSEventsHarness().posted.append).watch(raw(tmp_path), FRONTIER)
