"""The inotify watcher on real folders: reported events, dropped events, and kernel errors."""

from __future__ import annotations

import ctypes
import errno
import os
import queue
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.watch import inotify_reader
from rootsd.watch.events import (
    EventOverflow,
    EventResolver,
    FileEvent,
    FileEventKind,
    WatchOutcome,
    WatchPurpose,
)
from rootsd.watch.inotify import InotifyWatcher
from support.report_collector import HANG_S
from support.repositories import raw
from support.subprocesses import OWN_MOUNTS, UNPRIVILEGED, run_python

pytestmark = pytest.mark.needs("linux")

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
FRONTIER, ROOT, ABOVE, PROGRESS = (
    WatchPurpose.FRONTIER,
    WatchPurpose.ROOT,
    WatchPurpose.ABOVE,
    WatchPurpose.PROGRESS,
)


class WatcherHarness:
    """A watcher and the events that it posted."""

    def __init__(self, budget: int | None = None, *, listening: bool = True) -> None:
        self.queue: queue.SimpleQueue[EventResolver] = queue.SimpleQueue()
        self.watcher = InotifyWatcher(self.queue.put, budget)
        if listening:
            self.watcher.start()
        self._reported: deque[FileEvent | EventOverflow] = deque()

    def next(self) -> FileEvent | EventOverflow:
        while not self._reported:
            self._reported += self.queue.get(timeout=HANG_S)()
        return self._reported.popleft()

    def events_before(self, folder: Path) -> list[FileEvent | EventOverflow]:
        """Create `folder` in a watched folder, and return the events before its own."""
        folder.mkdir()
        reported: list[FileEvent | EventOverflow] = []
        while True:
            item = self.next()
            if isinstance(item, FileEvent) and item.name == raw(folder).rpartition(b"/")[2]:
                return reported
            reported.append(item)


@pytest.fixture
def harness() -> Iterator[WatcherHarness]:
    harness = WatcherHarness()
    yield harness
    harness.watcher.stop()


def test_added_changed_and_removed_folders_and_markers_are_reported_and_nothing_else(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    assert harness.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.WATCHED
    (tmp_path / "one").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "package.json").touch()
    (tmp_path / "one" / "sub").mkdir()
    (tmp_path / "one").chmod(0o700)
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "two" / "sub").rmdir()
    (tmp_path / "two").rmdir()
    top = raw(tmp_path)
    assert harness.events_before(tmp_path / "end") == [
        FileEvent(top, b"one", FileEventKind.ADDED, FRONTIER),
        FileEvent(top, b"package.json", FileEventKind.ADDED, FRONTIER),
        FileEvent(top, b"one", FileEventKind.MODIFIED, FRONTIER),
        FileEvent(top, b"one", FileEventKind.REMOVED, FRONTIER),
        FileEvent(top, b"two", FileEventKind.ADDED, FRONTIER, moved=True),
        FileEvent(top, b"two", FileEventKind.REMOVED, FRONTIER),
    ]


def test_a_progress_folder_reports_every_file_until_unwatched(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    for _ in range(2):
        harness.watcher.watch(raw(tmp_path), PROGRESS)
    (tmp_path / "file").touch()
    assert FileEvent(
        raw(tmp_path), b"file", FileEventKind.ADDED, PROGRESS
    ) in harness.events_before(tmp_path / "a")
    harness.watcher.unwatch(raw(tmp_path), PROGRESS)
    harness.events_before(tmp_path / "b")
    (tmp_path / "other").touch()
    assert harness.events_before(tmp_path / "c") == []
    assert harness.watcher.count() == 1


def test_only_changes_to_a_root_itself_are_reported(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    root = tmp_path / "one"
    root.mkdir()
    harness.watcher.watch(raw(root), ROOT)
    (root / "file").touch()
    (root / "file").chmod(0o600)
    root.chmod(0o700)
    assert harness.next() == FileEvent(raw(root), b"", FileEventKind.SELF, ROOT)
    (root / "file").unlink()
    root.rmdir()
    assert harness.next() == FileEvent(raw(root), b"", FileEventKind.SELF, ROOT)


def test_two_purposes_on_one_folder_are_reported_separately(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    harness.watcher.watch(raw(tmp_path), ROOT)
    assert harness.watcher.count() == 1
    tmp_path.chmod(0o700)
    reported = {harness.next(), harness.next()}
    assert reported == {
        FileEvent(raw(tmp_path), b"", FileEventKind.SELF, p) for p in (FRONTIER, ROOT)
    }
    harness.watcher.unwatch(raw(tmp_path), ROOT)
    assert harness.watcher.count() == 1
    harness.watcher.unwatch(raw(tmp_path), FRONTIER)
    assert harness.watcher.count() == 0


def test_after_a_rename_the_new_path_is_reported(harness: WatcherHarness, tmp_path: Path) -> None:
    """The kernel returns the same watch for the new path while the old path is still watched."""
    (tmp_path / "old").mkdir()
    harness.watcher.watch(raw(tmp_path / "old"), FRONTIER)
    (tmp_path / "old").rename(tmp_path / "new")
    harness.watcher.watch(raw(tmp_path / "new"), FRONTIER)
    harness.watcher.unwatch(raw(tmp_path / "old"), FRONTIER)
    assert harness.watcher.count() == 1
    (tmp_path / "new" / "sub").mkdir()
    reported = harness.next()
    while isinstance(reported, FileEvent) and not reported.name:
        reported = harness.next()
    assert reported == FileEvent(raw(tmp_path / "new"), b"sub", FileEventKind.ADDED, FRONTIER)


def test_a_failed_watch_returns_its_reason(harness: WatcherHarness, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(".")
    for name in ("none", "file", "link"):
        assert harness.watcher.watch(raw(tmp_path / name), FRONTIER) is WatchOutcome.GONE


def test_a_disk_error_does_not_end_the_watcher(
    harness: WatcherHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> int:
        ctypes.set_errno(errno.EIO)
        return -1

    with monkeypatch.context() as patched:
        patched.setattr(inotify_reader, "_inotify_add_watch", fail)
        assert harness.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.FAILED
    assert harness.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.WATCHED


def test_watches_stay_within_the_budget() -> None:
    harness = WatcherHarness(budget=2)
    try:
        results = [harness.watcher.watch(path, ROOT) for path in (b"/", b"/usr", b"/etc", b"/")]
    finally:
        harness.watcher.stop()
    assert results == [
        WatchOutcome.WATCHED,
        WatchOutcome.WATCHED,
        WatchOutcome.LIMIT,
        WatchOutcome.WATCHED,
    ]


def test_watches_of_markers_give_way_to_all_others() -> None:
    harness, markers = WatcherHarness(budget=3), WatchPurpose.MARKERS
    try:
        watched = [harness.watcher.watch(path, markers) for path in (b"/", b"/usr", b"/etc")]
        assert watched == [WatchOutcome.WATCHED] * 3
        assert harness.watcher.watch(b"/bin/..", markers) is WatchOutcome.LIMIT
        watched = [harness.watcher.watch(path, FRONTIER) for path in (b"/var", b"/opt", b"/home")]
        assert watched == [WatchOutcome.WATCHED] * 3
        assert harness.watcher.count() == 3
        assert harness.watcher.watch(b"/usr", FRONTIER) is WatchOutcome.LIMIT
    finally:
        harness.watcher.stop()


def test_before_an_overflow_only_ended_watches_are_reported(tmp_path: Path) -> None:
    harness = WatcherHarness(listening=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    harness.watcher.watch(raw(gone), FRONTIER)
    gone.rmdir()
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    for _ in range(int(QUEUE.read_text()) // 4 + 1):
        os.rename(here, there)
        os.rename(there, here)
    harness.watcher.start()
    try:
        assert harness.next() == FileEvent(raw(gone), b"", FileEventKind.SELF, FRONTIER)
        assert harness.next() == EventOverflow()
        assert harness.events_before(tmp_path / "later") == []
    finally:
        harness.watcher.stop()


def test_an_event_in_an_unwatched_folder_is_dropped(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    harness.watcher.watch(raw(tmp_path), FRONTIER)
    (tmp_path / "one").mkdir()
    resolver = harness.queue.get(timeout=HANG_S)
    harness.watcher.unwatch(raw(tmp_path), FRONTIER)
    assert resolver() == ()


WATCH = """
import os, sys
from rootsd.watch.events import WatchPurpose
from rootsd.watch.inotify import InotifyWatcher
watcher = InotifyWatcher(print)
watcher.start()
for name in sys.argv[1:]:
    print(watcher.watch(os.fsencode(name), WatchPurpose.FRONTIER).value, watcher.count())
watcher.stop()
"""


@pytest.mark.needs("root", "setpriv")
def test_a_folder_without_permission_is_unreadable_and_leaves_no_watch(tmp_path: Path) -> None:
    folders = [tmp_path / "hidden", tmp_path / "hidden2"]
    for folder in folders:
        folder.mkdir(mode=0)
    expected = "no permission to watch 0\n" * 2
    assert run_python(UNPRIVILEGED, WATCH, *folders) == (expected, "")


TWO_PATHS = """
import os, queue, subprocess, sys
from rootsd.watch.events import WatchPurpose
from rootsd.watch.inotify import InotifyWatcher
top = os.fsencode(sys.argv[1])
posted = queue.SimpleQueue()
for name in (b"/one", b"/two"):
    os.mkdir(top + name)
subprocess.run(["mount", "--bind", top + b"/one", top + b"/two"], check=True)
watcher = InotifyWatcher(posted.put)
watcher.start()
for name in (b"/one", b"/two"):
    watcher.watch(top + name, WatchPurpose.FRONTIER)
os.mkdir(top + b"/one/sub")
print(sorted(os.path.basename(reported.folder) for reported in posted.get(timeout=30)()))
watcher.stop()
"""


@pytest.mark.needs("namespaces")
def test_an_event_is_reported_under_each_path_of_its_folder(tmp_path: Path) -> None:
    assert run_python(OWN_MOUNTS, TWO_PATHS, tmp_path) == ("[b'one', b'two']\n", "")
