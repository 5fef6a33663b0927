"""What is watched above parents and on roots, so that nothing moves away unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.app.discovery.guards import Guards
from rootsd.host.watch.events import Purpose, Watched
from support.repos import raw
from support.subjects import UNPRIVILEGED, run_python
from support.watching import RememberingWatcher


def test_a_parent_and_everything_above_it_is_watched_for_its_own_fate(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    Guards(watcher).set_parents([raw(tmp_path)])
    assert {raw(tmp_path), raw(tmp_path.parent), b"/"} <= watcher.folders(Purpose.ROOT)
    assert watcher.folders(Purpose.ABOVE) == set()


def test_a_missing_parent_is_awaited_from_the_nearest_living_folder(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    guards = Guards(watcher)
    missing = tmp_path / "a" / "b" / "src"
    guards.set_parents([raw(missing)])
    assert watcher.folders(Purpose.ABOVE) == {raw(tmp_path)}
    (tmp_path / "a").mkdir()
    guards.set_parents([raw(missing)])
    assert watcher.folders(Purpose.ABOVE) == {raw(tmp_path / "a")}
    missing.mkdir(parents=True)
    guards.set_parents([raw(missing)])
    assert watcher.folders(Purpose.ABOVE) == set()


def test_folders_that_come_while_the_watches_are_set_are_watched_as_well(tmp_path: Path) -> None:
    come = iter([tmp_path / "a", tmp_path / "a" / "b"])

    class Slow(RememberingWatcher):
        def watch(self, folder: bytes, purpose: Purpose) -> Watched:
            if purpose is Purpose.ABOVE and (path := next(come, None)) is not None:
                path.mkdir()
            return super().watch(folder, purpose)

    watcher = Slow()
    Guards(watcher).set_parents([raw(tmp_path / "a" / "b" / "src")])
    assert watcher.folders(Purpose.ABOVE) == {raw(tmp_path / "a" / "b")}


def test_of_a_folder_that_is_just_being_removed_the_one_above_it_tells(tmp_path: Path) -> None:
    """For a moment it can be seen, and not watched any more."""
    removed = tmp_path / "a"
    removed.mkdir()

    class Late(RememberingWatcher):
        def watch(self, folder: bytes, purpose: Purpose) -> Watched:
            return Watched.GONE if folder == raw(removed) else super().watch(folder, purpose)

    watcher = Late()
    Guards(watcher).set_parents([raw(removed / "src"), raw(tmp_path / "b")])
    assert watcher.folders(Purpose.ABOVE) == {raw(tmp_path)}


_UNREADABLE = """
import os, sys
from pathlib import Path
from rootsd.app.discovery.guards import Guards
from rootsd.host.watch.events import Purpose
from support.subjects import UNPRIVILEGED, run_python
from support.watching import RememberingWatcher

parent = Path(sys.argv[1]) / "a" / "src"
parent.mkdir(parents=True)
for mode, folder in ((0o000, parent), (0o311, parent.parent)):
    folder.chmod(mode)
    watcher = RememberingWatcher()
    Guards(watcher).set_parents([os.fsencode(parent)])
    (above,) = watcher.folders(Purpose.ABOVE)
    print(Path(os.fsdecode(above)) == folder.parent)
    folder.chmod(0o755)
"""


@pytest.mark.needs("setpriv")
def test_of_a_folder_that_cannot_be_watched_the_one_above_it_tells(tmp_path: Path) -> None:
    assert run_python(UNPRIVILEGED, _UNREADABLE, tmp_path) == ("True\nTrue\n", "")


def test_guards_of_a_parent_that_is_dropped_are_given_back(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    guards = Guards(watcher)
    guards.set_parents([raw(tmp_path)])
    guards.set_parents([])
    assert watcher.count() == 0


def test_roots_are_watched_as_long_as_they_are_roots(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    guards = Guards(watcher)
    guards.set_parents([raw(tmp_path)])
    guards.set_roots(frozenset((raw(tmp_path), raw(tmp_path / "one"))))
    assert raw(tmp_path / "one") in watcher.folders(Purpose.ROOT)
    guards.set_roots(frozenset())
    assert raw(tmp_path / "one") not in watcher.folders(Purpose.ROOT)
    assert raw(tmp_path) in watcher.folders(Purpose.ROOT)


def test_renewing_watches_what_is_there_now(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    guards = Guards(watcher)
    guards.set_roots(frozenset((raw(tmp_path),)))
    watcher.watched.clear()
    guards.renew(raw(tmp_path))
    guards.renew(b"/elsewhere")
    assert watcher.folders(Purpose.ROOT) == {raw(tmp_path)}
