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
    """Remembers whether it runs."""

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


class Mac:
    """A watcher, its streams, and what it posted."""

    def __init__(self) -> None:
        self.streams: dict[bytes, FakeStream] = {}
        self.posted: list[EventResolver] = []
        self.refuses = False
        self.watcher = FSEventsWatcher(self.posted.append, self._open)

    def _open(self, folder: bytes, callback: StreamCallback) -> FakeStream:
        stream = self.streams[folder] = FakeStream(callback)
        stream.refused = self.refuses
        return stream

    def told(self) -> list[FileEvent | EventOverflow]:
        return [told for signal in self.posted for told in signal()]


@pytest.fixture
def mac() -> Mac:
    return Mac()


def test_one_stream_covers_a_parent(mac: Mac, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert mac.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.YES
    assert mac.watcher.watch(raw(tmp_path / "sub"), FRONTIER) is WatchOutcome.YES
    assert list(mac.streams) == [raw(tmp_path)]
    assert mac.watcher.count() == 1


def test_streams_start_with_the_watcher_and_later_ones_at_once(mac: Mac, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mac.watcher.watch(raw(tmp_path / "a"), FRONTIER)
    assert not mac.streams[raw(tmp_path / "a")].running
    mac.watcher.start()
    mac.watcher.watch(raw(tmp_path / "b"), FRONTIER)
    assert all(stream.running for stream in mac.streams.values())
    mac.watcher.unwatch(raw(tmp_path / "a"), FRONTIER)
    assert not mac.streams[raw(tmp_path / "a")].running
    mac.watcher.stop()
    assert mac.watcher.count() == 0


def test_a_parent_is_not_watched_if_no_stream_starts(mac: Mac, tmp_path: Path) -> None:
    mac.watcher.start()
    mac.refuses = True
    assert mac.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.UNSUPPORTED
    assert mac.watcher.count() == 0
    mac.refuses = False
    assert mac.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.YES


def test_a_parent_around_another_stays_watched_if_either_is_removed(
    mac: Mac, tmp_path: Path
) -> None:
    inner = tmp_path / "a" / "inner"
    inner.mkdir(parents=True)
    mac.watcher.start()
    for folder in (inner, tmp_path, tmp_path / "a"):
        mac.watcher.watch(raw(folder), FRONTIER)
    assert mac.watcher.count() == 2
    mac.watcher.unwatch(raw(inner), FRONTIER)
    mac.streams[raw(tmp_path)].tell([raw(tmp_path / "a" / "new")], [RENAMED])
    assert mac.told() == [FileEvent(raw(tmp_path / "a"), b"new", FileEventKind.CAME, FRONTIER)]
    mac.watcher.watch(raw(inner), FRONTIER)
    mac.watcher.unwatch(raw(tmp_path), FRONTIER)
    mac.watcher.unwatch(raw(tmp_path / "a"), FRONTIER)
    assert {path for path, stream in mac.streams.items() if stream.running} >= {raw(inner)}


def test_a_parent_inside_a_removed_one_stays_watched(mac: Mac, tmp_path: Path) -> None:
    inner, deep = tmp_path / "a" / "inner", tmp_path / "a" / "inner" / "deep"
    deep.mkdir(parents=True)
    mac.watcher.start()
    for folder in (tmp_path, inner, deep):
        mac.watcher.watch(raw(folder), FRONTIER)
    assert list(mac.streams) == [raw(tmp_path)]
    mac.watcher.unwatch(raw(tmp_path), FRONTIER)
    assert {path: stream.running for path, stream in mac.streams.items()} == {
        raw(tmp_path): False,
        raw(inner): True,
    }
    mac.streams[raw(inner)].tell([raw(deep / "new")], [RENAMED])
    assert mac.told() == [FileEvent(raw(deep), b"new", FileEventKind.CAME, FRONTIER)]


@pytest.mark.parametrize("flag", [MOUNT, UNMOUNT])
def test_a_mount_below_a_parent_is_an_overflow(mac: Mac, tmp_path: Path, flag: int) -> None:
    mac.watcher.watch(raw(tmp_path), FRONTIER)
    mac.streams[raw(tmp_path)].tell([raw(tmp_path / "disk")], [flag])
    assert mac.told() == [EventOverflow()]


def test_no_stream_is_opened_above_a_parent(mac: Mac, tmp_path: Path) -> None:
    """A stream is recursive: one on the root of the system would hear everything."""
    assert mac.watcher.watch(b"/", ROOT) is WatchOutcome.UNSUPPORTED
    assert mac.watcher.watch(raw(tmp_path / "none"), FRONTIER) is WatchOutcome.GONE
    assert mac.streams == {}


def test_only_events_in_watched_folders_are_posted(mac: Mac, tmp_path: Path) -> None:
    top = raw(tmp_path)
    mac.watcher.watch(top, FRONTIER)
    paths = [top + b"/one", top + b"/one/node_modules/x.js", top + b"/one/src"]
    mac.streams[top].tell(paths, [RENAMED] * 3)
    assert mac.told() == [FileEvent(top, b"one", FileEventKind.CAME, FRONTIER)]


def test_lost_events_are_an_overflow(mac: Mac, tmp_path: Path) -> None:
    mac.watcher.watch(raw(tmp_path), FRONTIER)
    mac.streams[raw(tmp_path)].tell([raw(tmp_path)], [DROPPED])
    assert mac.told() == [EventOverflow()]


def test_a_moved_parent_is_reported_as_itself(mac: Mac, tmp_path: Path) -> None:
    mac.watcher.watch(raw(tmp_path), FRONTIER)
    mac.streams[raw(tmp_path)].tell([raw(tmp_path)], [ROOT_CHANGED])
    assert mac.told() == [FileEvent(raw(tmp_path), b"", FileEventKind.ITSELF, FRONTIER)]


def test_inside_a_project_being_created_all_events_are_posted(mac: Mac, tmp_path: Path) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    git = raw(tmp_path / "one" / ".git")
    mac.watcher.watch(raw(tmp_path), FRONTIER)
    mac.watcher.watch(git, WatchPurpose.AT_WORK)
    mac.streams[raw(tmp_path)].tell([git + b"/HEAD"], [RENAMED])
    assert mac.told() == [
        FileEvent(git, b"HEAD", FileEventKind.CAME, WatchPurpose.AT_WORK, moved=True)
    ]
    mac.watcher.unwatch(git, WatchPurpose.AT_WORK)
    assert mac.told() == []


@pytest.mark.needs("linux")
def test_other_systems_have_no_fsevents(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="macOS"):
        FSEventsWatcher(Mac().posted.append).watch(raw(tmp_path), FRONTIER)
