"""The inotify watcher while many folders change: it loses no event and leaks no resource."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from rootsd.watch import inotify
from rootsd.watch.events import EventOverflow, FileEvent, FileEventKind, WatchOutcome, WatchPurpose
from rootsd.watch.inotify import InotifyWatcher
from rootsd.watch.inotify_records import InotifyRecord, decode_records
from support.fake_watchers import PumpedInotify
from support.repositories import raw
from support.sizes import Sizes

pytestmark = pytest.mark.needs("linux")

PROGRESS, FRONTIER = WatchPurpose.PROGRESS, WatchPurpose.FRONTIER
ADDED, LEFT, ALTERED = FileEventKind.ADDED, FileEventKind.REMOVED, FileEventKind.MODIFIED
DESCRIPTORS = Path("/proc/self/fd")


@pytest.fixture
def inotify_here(tmp_path: Path) -> Iterator[PumpedInotify]:
    pumped = PumpedInotify(tmp_path / "barrier")
    yield pumped
    pumped.watcher.stop()


class Storm:
    """Random changes in three watched folders and an unwatched one, and the events they cause."""

    def __init__(self, top: Path, watcher: InotifyWatcher, seed: int) -> None:
        self.watched = [top / name for name in ("a", "b", "c")]
        self.folders = [*self.watched, top / "unwatched"]
        for folder in self.folders:
            folder.mkdir()
        for folder in self.watched:
            assert watcher.watch(raw(folder), PROGRESS) is WatchOutcome.WATCHED
        self.random = random.Random(seed)  # noqa: S311 - a test that can be repeated
        self.entries: list[Path] = []
        self.expected: list[FileEvent] = []
        self._numbers = itertools.count()

    def blow(self, changes: int) -> None:
        for number in itertools.islice(self._numbers, changes):
            entry = self.random.choice(self.folders) / os.fsdecode(b"n\xff%d" % number)
            match self.random.choice(("file", "folder", "rename", "rename", "delete")):
                case "file":
                    entry.touch()
                    self._expect(entry, ADDED)
                    self._expect(entry, ALTERED)
                    self.entries.append(entry)
                case "folder":
                    entry.mkdir()
                    self._expect(entry, ADDED)
                    self.entries.append(entry)
                case "rename" if self.entries:
                    old = self._take()
                    old.rename(entry)
                    self._expect(old, LEFT)
                    self._expect(entry, ADDED, moved=True)
                    self.entries.append(entry)
                case "delete" if self.entries:
                    old = self._take()
                    old.rmdir() if old.is_dir() else old.unlink()
                    self._expect(old, LEFT)

    def _take(self) -> Path:
        return self.entries.pop(self.random.randrange(len(self.entries)))

    def _expect(self, entry: Path, change: FileEventKind, *, moved: bool = False) -> None:
        if entry.parent in self.watched:
            name = os.fsencode(entry.name)
            self.expected.append(FileEvent(raw(entry.parent), name, change, PROGRESS, moved))


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_is_reported_completely_and_in_order(
    inotify_here: PumpedInotify, tmp_path: Path, sizes: Sizes, seed: int
) -> None:
    storm = Storm(tmp_path, inotify_here.watcher, seed)
    for _ in range(sizes.pick(test=1, check=20, soak=60)):
        storm.blow(2_000)
        assert inotify_here.pump() == storm.expected
        storm.expected.clear()


def test_the_harness_detects_a_reader_that_loses_one_record_in_a_thousand(
    inotify_here: PumpedInotify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter(range(1, 1_000_000))

    def lossy(found: bytes) -> Iterable[InotifyRecord]:
        return (record for record in decode_records(found) if next(seen) % 1_000)

    monkeypatch.setattr(inotify, "decode_records", lossy)
    storm = Storm(tmp_path, inotify_here.watcher, 0)
    storm.blow(2_000)
    assert inotify_here.pump() != storm.expected


def test_many_folders_are_watched(inotify_here: PumpedInotify, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(1_000)]
    for folder in folders:
        folder.mkdir()
        assert inotify_here.watcher.watch(raw(folder), FRONTIER) is WatchOutcome.WATCHED
    assert inotify_here.watcher.count() == 1 + len(folders)
    for folder in folders:
        (folder / "new").mkdir()
    assert inotify_here.pump() == [
        FileEvent(raw(folder), b"new", ADDED, FRONTIER) for folder in folders
    ]
    for folder in folders:
        inotify_here.watcher.unwatch(raw(folder), FRONTIER)
        (folder / "unseen").mkdir()
    assert inotify_here.pump() == []
    assert inotify_here.watcher.count() == 1


class FolderChurn:
    """A thread that creates and removes a folder until the `with` block ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._change)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _change(self) -> None:
        while not self._ended.is_set():
            self._folder.mkdir()
            self._folder.rmdir()


def count_resources() -> tuple[int, int]:
    """Return the number of open descriptors and the number of threads."""
    return len(list(DESCRIPTORS.iterdir())), threading.active_count()


def test_closing_while_events_arrive_leaves_nothing_behind(tmp_path: Path, sizes: Sizes) -> None:
    before = count_resources()
    ignore: Callable[[object], None] = lambda _: None  # noqa: E731
    with FolderChurn(tmp_path / "new"):
        for number in range(sizes.pick(test=60, check=1_000, soak=3_000)):
            watcher = InotifyWatcher(ignore)
            watcher.watch(raw(tmp_path), FRONTIER)
            if number % 10:
                watcher.start()
            watcher.stop()
            watcher.stop()
            assert watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.FAILED
    assert count_resources() == before


def test_watches_come_and_go_while_events_arrive(
    inotify_here: PumpedInotify, tmp_path: Path
) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    watcher = inotify_here.watcher
    with FolderChurn(folder / "new"):
        for number in range(500):
            assert watcher.watch(raw(folder), PROGRESS) is WatchOutcome.WATCHED
            (folder / f"file{number}").touch()
            reported = inotify_here.pump()
            assert FileEvent(raw(folder), b"file%d" % number, ADDED, PROGRESS) in reported
            assert EventOverflow() not in reported
            watcher.unwatch(raw(folder), PROGRESS)
    inotify_here.pump()
    assert watcher.count() == 1
    # A folder that was deleted and created again gets another watch.
    for _ in range(100):
        other.mkdir()
        assert watcher.watch(raw(other), FRONTIER) is WatchOutcome.WATCHED
        other.rmdir()
    inotify_here.pump()
    assert watcher.count() == 1
