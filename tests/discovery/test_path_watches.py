"""The watches above parents and on roots notice every move."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.discovery.path_watches import PathWatches
from rootsd.watch.events import WatchOutcome, WatchPurpose
from support.fake_watchers import RecordingWatcher
from support.repositories import raw
from support.subprocesses import UNPRIVILEGED, run_python


def test_a_parent_and_all_folders_above_it_are_watched(tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    PathWatches(watcher).set_parents([raw(tmp_path)])
    assert {raw(tmp_path), raw(tmp_path.parent), b"/"} <= watcher.folders(WatchPurpose.PARENT)
    assert watcher.folders(WatchPurpose.ABOVE) == set()


def test_for_a_missing_parent_the_nearest_existing_folder_is_watched(tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    watches = PathWatches(watcher)
    missing = tmp_path / "a" / "b" / "src"
    watches.set_parents([raw(missing)])
    assert watcher.folders(WatchPurpose.ABOVE) == {raw(tmp_path)}
    (tmp_path / "a").mkdir()
    watches.set_parents([raw(missing)])
    assert watcher.folders(WatchPurpose.ABOVE) == {raw(tmp_path / "a")}
    missing.mkdir(parents=True)
    watches.set_parents([raw(missing)])
    assert watcher.folders(WatchPurpose.ABOVE) == set()


def test_folders_created_while_watches_are_set_are_watched_too(tmp_path: Path) -> None:
    come = iter([tmp_path / "a", tmp_path / "a" / "b"])

    class Slow(RecordingWatcher):
        def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
            if purpose is WatchPurpose.ABOVE and (path := next(come, None)) is not None:
                path.mkdir()
            return super().watch(folder, purpose)

    watcher = Slow()
    PathWatches(watcher).set_parents([raw(tmp_path / "a" / "b" / "src")])
    assert watcher.folders(WatchPurpose.ABOVE) == {raw(tmp_path / "a" / "b")}


def test_the_folder_above_a_vanishing_folder_is_watched(tmp_path: Path) -> None:
    """For a moment the folder exists but can no longer be watched."""
    removed = tmp_path / "a"
    removed.mkdir()

    class Late(RecordingWatcher):
        def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
            return WatchOutcome.GONE if folder == raw(removed) else super().watch(folder, purpose)

    watcher = Late()
    PathWatches(watcher).set_parents([raw(removed / "src"), raw(tmp_path / "b")])
    assert watcher.folders(WatchPurpose.ABOVE) == {raw(tmp_path)}


_UNREADABLE = """
import os, sys
from pathlib import Path
from rootsd.discovery.path_watches import PathWatches
from rootsd.watch.events import WatchPurpose
from support.subprocesses import UNPRIVILEGED, run_python
from support.fake_watchers import RecordingWatcher

parent = Path(sys.argv[1]) / "a" / "src"
parent.mkdir(parents=True)
for mode, folder in ((0o000, parent), (0o311, parent.parent)):
    folder.chmod(mode)
    watcher = RecordingWatcher()
    PathWatches(watcher).set_parents([os.fsencode(parent)])
    (above,) = watcher.folders(WatchPurpose.ABOVE)
    print(Path(os.fsdecode(above)) == folder.parent)
    folder.chmod(0o755)
"""


@pytest.mark.needs("setpriv")
def test_the_folder_above_an_unwatchable_folder_is_watched(tmp_path: Path) -> None:
    assert run_python(UNPRIVILEGED, _UNREADABLE, tmp_path) == ("True\nTrue\n", "")


def test_the_watches_of_a_dropped_parent_are_removed(tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    watches = PathWatches(watcher)
    watches.set_parents([raw(tmp_path)])
    watches.set_parents([])
    assert watcher.count() == 0


def test_roots_are_watched_as_long_as_they_are_roots(tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    watches = PathWatches(watcher)
    watches.set_parents([raw(tmp_path)])
    watches.set_roots(frozenset((raw(tmp_path), raw(tmp_path / "one"))))
    assert raw(tmp_path / "one") in watcher.folders(WatchPurpose.ROOT)
    watches.set_roots(frozenset())
    assert watcher.folders(WatchPurpose.ROOT) == set()
    assert raw(tmp_path) in watcher.folders(WatchPurpose.PARENT)


def test_renewing_watches_the_present_folders(tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    watches = PathWatches(watcher)
    watches.set_roots(frozenset((raw(tmp_path),)))
    watcher.watched.clear()
    watches.renew(raw(tmp_path))
    watches.renew(b"/elsewhere")
    assert watcher.folders(WatchPurpose.ROOT) == {raw(tmp_path)}
