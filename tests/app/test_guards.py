"""What is watched above parents and on roots, so that nothing moves away unseen."""

from __future__ import annotations

from pathlib import Path

from rootsd.app.guards import Guards
from rootsd.host.watch.events import Purpose, Watched
from support.repos import raw
from support.watching import RememberingWatcher


def test_a_parent_and_everything_above_it_is_watched_for_its_own_fate(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    assert Guards(watcher).set_parents([raw(tmp_path)]) == []
    assert {raw(tmp_path), raw(tmp_path.parent), b"/"} <= watcher.folders(Purpose.ROOT)
    assert watcher.folders(Purpose.ABOVE) == set()


def test_a_missing_parent_is_awaited_from_the_nearest_living_folder(tmp_path: Path) -> None:
    watcher = RememberingWatcher()
    guards = Guards(watcher)
    missing = tmp_path / "a" / "b" / "src"
    assert guards.set_parents([raw(missing)]) == []
    assert watcher.folders(Purpose.ABOVE) == {raw(tmp_path)}
    (tmp_path / "a").mkdir()
    guards.set_parents([raw(missing)])
    assert watcher.folders(Purpose.ABOVE) == {raw(tmp_path / "a")}
    missing.mkdir(parents=True)
    guards.set_parents([raw(missing)])
    assert watcher.folders(Purpose.ABOVE) == set()


def test_a_parent_that_comes_while_the_watch_is_set_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "src"

    class Slow(RememberingWatcher):
        def watch(self, folder: bytes, purpose: Purpose) -> Watched:
            missing.mkdir(exist_ok=True)
            return super().watch(folder, purpose)

    assert Guards(Slow()).set_parents([raw(missing)]) == [raw(missing)]


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
