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
FRONTIER, ROOT, ABOVE, AT_WORK = (
    WatchPurpose.FRONTIER,
    WatchPurpose.ROOT,
    WatchPurpose.ABOVE,
    WatchPurpose.AT_WORK,
)


class Ears:
    """A watcher and its events; `upto` reads until an event with the given name."""

    def __init__(self, budget: int | None = None, *, listening: bool = True) -> None:
        self.queue: queue.SimpleQueue[EventResolver] = queue.SimpleQueue()
        self.watcher = InotifyWatcher(self.queue.put, budget)
        if listening:
            self.watcher.start()
        self._told: deque[FileEvent | EventOverflow] = deque()

    def next(self) -> FileEvent | EventOverflow:
        while not self._told:
            self._told += self.queue.get(timeout=HANG_S)()
        return self._told.popleft()

    def upto(self, folder: Path) -> list[FileEvent | EventOverflow]:
        """Everything told before `folder`, made now in a watched folder."""
        folder.mkdir()
        told: list[FileEvent | EventOverflow] = []
        while True:
            item = self.next()
            if isinstance(item, FileEvent) and item.name == raw(folder).rpartition(b"/")[2]:
                return told
            told.append(item)


@pytest.fixture
def ears() -> Iterator[Ears]:
    ears = Ears()
    yield ears
    ears.watcher.stop()


def test_added_and_removed_folders_and_markers_are_reported(ears: Ears, tmp_path: Path) -> None:
    assert ears.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.YES
    (tmp_path / "one").mkdir()
    (tmp_path / "package.json").touch()
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "two").rmdir()
    top = raw(tmp_path)
    assert ears.upto(tmp_path / "end") == [
        FileEvent(top, b"one", FileEventKind.CAME, FRONTIER),
        FileEvent(top, b"package.json", FileEventKind.CAME, FRONTIER),
        FileEvent(top, b"one", FileEventKind.LEFT, FRONTIER),
        FileEvent(top, b"two", FileEventKind.CAME, FRONTIER, moved=True),
        FileEvent(top, b"two", FileEventKind.LEFT, FRONTIER),
    ]


def test_other_files_are_not_reported(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    for number in range(1000):
        (tmp_path / f"file{number}").write_text("x")
    assert ears.upto(tmp_path / "end") == []


def test_a_progress_folder_reports_every_file_until_unwatched(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    for _ in range(2):
        ears.watcher.watch(raw(tmp_path), AT_WORK)
    (tmp_path / "file").touch()
    assert FileEvent(raw(tmp_path), b"file", FileEventKind.CAME, AT_WORK) in ears.upto(
        tmp_path / "a"
    )
    ears.watcher.unwatch(raw(tmp_path), AT_WORK)
    ears.upto(tmp_path / "b")
    (tmp_path / "other").touch()
    assert ears.upto(tmp_path / "c") == []
    assert ears.watcher.count() == 1


def test_changes_below_a_watched_folder_are_not_reported(ears: Ears, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    (tmp_path / "one" / "sub").mkdir()
    assert ears.upto(tmp_path / "end") == []


def test_a_chmod_of_a_folder_inside_is_reported(ears: Ears, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    (tmp_path / "one").chmod(0o700)
    expected = [FileEvent(raw(tmp_path), b"one", FileEventKind.ALTERED, FRONTIER)]
    assert ears.upto(tmp_path / "end") == expected


def test_inside_a_project_being_created_every_file_is_reported(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), AT_WORK)
    (tmp_path / "HEAD.lock").write_text("x")
    (tmp_path / "HEAD.lock").rename(tmp_path / "HEAD")
    told = ears.upto(tmp_path / "end")
    assert [(h.name, h.change, h.moved) for h in told if isinstance(h, FileEvent)] == [
        (b"HEAD.lock", FileEventKind.CAME, False),
        (b"HEAD.lock", FileEventKind.ALTERED, False),
        (b"HEAD.lock", FileEventKind.LEFT, False),
        (b"HEAD", FileEventKind.CAME, True),
    ]


def test_of_a_root_only_its_own_changes_are_reported(ears: Ears, tmp_path: Path) -> None:
    root = tmp_path / "one"
    root.mkdir()
    ears.watcher.watch(raw(root), ROOT)
    (root / "file").touch()
    (root / "file").chmod(0o600)
    root.chmod(0o700)
    assert ears.next() == FileEvent(raw(root), b"", FileEventKind.ITSELF, ROOT)
    (root / "file").unlink()
    root.rmdir()
    assert ears.next() == FileEvent(raw(root), b"", FileEventKind.ITSELF, ROOT)


def test_above_a_missing_parent_only_folders_are_reported(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), ABOVE)
    (tmp_path / "package.json").touch()
    (tmp_path / "src").mkdir()
    assert ears.next() == FileEvent(raw(tmp_path), b"src", FileEventKind.CAME, ABOVE)


def test_two_purposes_on_one_folder_are_reported_separately(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    ears.watcher.watch(raw(tmp_path), ROOT)
    assert ears.watcher.count() == 1
    tmp_path.chmod(0o700)
    told = {ears.next(), ears.next()}
    assert told == {
        FileEvent(raw(tmp_path), b"", FileEventKind.ITSELF, p) for p in (FRONTIER, ROOT)
    }
    ears.watcher.unwatch(raw(tmp_path), ROOT)
    assert ears.watcher.count() == 1
    ears.watcher.unwatch(raw(tmp_path), FRONTIER)
    assert ears.watcher.count() == 0


def test_after_a_rename_the_new_path_is_reported(ears: Ears, tmp_path: Path) -> None:
    """The kernel gives the same descriptor for the new path before the old one is given up."""
    (tmp_path / "old").mkdir()
    ears.watcher.watch(raw(tmp_path / "old"), FRONTIER)
    (tmp_path / "old").rename(tmp_path / "new")
    ears.watcher.watch(raw(tmp_path / "new"), FRONTIER)
    ears.watcher.unwatch(raw(tmp_path / "old"), FRONTIER)
    assert ears.watcher.count() == 1
    (tmp_path / "new" / "sub").mkdir()
    told = ears.next()
    while isinstance(told, FileEvent) and not told.name:
        told = ears.next()
    assert told == FileEvent(raw(tmp_path / "new"), b"sub", FileEventKind.CAME, FRONTIER)


def test_a_deleted_folder_ends_its_watch(ears: Ears, tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    ears.watcher.watch(raw(one), FRONTIER)
    one.rmdir()
    assert ears.next() == FileEvent(raw(one), b"", FileEventKind.ITSELF, FRONTIER)
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    ears.upto(tmp_path / "end")
    assert ears.watcher.count() == 1
    one.mkdir()
    assert ears.watcher.watch(raw(one), FRONTIER) is WatchOutcome.YES


def test_a_failed_watch_returns_its_reason(ears: Ears, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(".")
    for name in ("none", "file", "link"):
        assert ears.watcher.watch(raw(tmp_path / name), FRONTIER) is WatchOutcome.GONE


def test_a_disk_error_does_not_end_the_watcher(
    ears: Ears, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> int:
        ctypes.set_errno(errno.EIO)
        return -1

    with monkeypatch.context() as patched:
        patched.setattr(inotify_reader, "_inotify_add_watch", fail)
        assert ears.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.FAILED
    assert ears.watcher.watch(raw(tmp_path), FRONTIER) is WatchOutcome.YES


def test_watches_stay_within_the_budget() -> None:
    ears = Ears(budget=2)
    try:
        results = [ears.watcher.watch(path, ROOT) for path in (b"/", b"/usr", b"/etc", b"/")]
    finally:
        ears.watcher.stop()
    assert results == [WatchOutcome.YES, WatchOutcome.YES, WatchOutcome.LIMIT, WatchOutcome.YES]


def test_before_an_overflow_only_ended_watches_are_reported(tmp_path: Path) -> None:
    ears = Ears(listening=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    ears.watcher.watch(raw(gone), FRONTIER)
    gone.rmdir()
    for _ in range(int(QUEUE.read_text()) // 2 + 1):
        gone.mkdir()
        gone.rmdir()
    ears.watcher.start()
    try:
        assert ears.next() == FileEvent(raw(gone), b"", FileEventKind.ITSELF, FRONTIER)
        assert ears.next() == EventOverflow()
        assert ears.upto(tmp_path / "later") == []
    finally:
        ears.watcher.stop()


def test_names_need_not_be_text(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    Path(os.fsdecode(raw(tmp_path) + b"/caf\xe9")).mkdir()
    assert ears.next() == FileEvent(raw(tmp_path), b"caf\xe9", FileEventKind.CAME, FRONTIER)


def test_an_event_of_an_unwatched_folder_is_dropped(ears: Ears, tmp_path: Path) -> None:
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    (tmp_path / "one").mkdir()
    signal = ears.queue.get(timeout=HANG_S)
    ears.watcher.unwatch(raw(tmp_path), FRONTIER)
    assert signal() == ()


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
print(sorted(os.path.basename(told.folder) for told in posted.get(timeout=30)()))
watcher.stop()
"""


@pytest.mark.needs("namespaces")
def test_an_event_is_reported_under_each_path_of_its_folder(tmp_path: Path) -> None:
    assert run_python(OWN_MOUNTS, TWO_PATHS, tmp_path) == ("[b'one', b'two']\n", "")


def test_the_end_of_a_watch_is_reported_for_each_purpose(ears: Ears, tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.mkdir()
    ears.watcher.watch(raw(one), FRONTIER)
    ears.watcher.watch(raw(one), AT_WORK)
    one.rmdir()
    told = {ears.next() for _ in range(4)}
    assert told == {FileEvent(raw(one), b"", FileEventKind.ITSELF, p) for p in (FRONTIER, AT_WORK)}
    ears.watcher.watch(raw(tmp_path), FRONTIER)
    ears.upto(tmp_path / "end")
    assert ears.watcher.count() == 1
