"""One parent's tree agrees with the disk after every kind of change it is told of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rootsd.core.model import Parent, ProjectKind, ScanCoverage
from rootsd.discovery.candidates import Arrival
from rootsd.discovery.parent_tree import ParentTree
from rootsd.disk.markers import WalkRules
from rootsd.watch.events import WatchOutcome, WatchPurpose
from support.repos import fake_repository, raw
from support.watching import RememberingWatcher

FOUND, MADE, MOVED = Arrival.FOUND, Arrival.MADE, Arrival.MOVED


class Ledger:
    """A `Sink` that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[bytes, ProjectKind | None, Arrival | None]] = []

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        self.told.append((path, kind, arrival))

    def remembered(self, path: bytes) -> None:
        """Those that the tree has are counted; `found` follows."""

    def lost(self, path: bytes) -> None:
        self.told.append((path, None, None))


class Land:
    """A territory over a folder, with what it watches and tells."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.watcher = RememberingWatcher()
        self.sink = Ledger()
        parent = Parent(raw(top))
        self.territory = ParentTree(parent, WalkRules.of(parent), self.watcher, self.sink)
        self.territory.explore(FOUND)
        self.sink.told.clear()

    def changed(self, folder: Path, name: str, left: bool = False, moved: bool = False) -> None:
        self.territory.entry_changed(raw(folder), name.encode(), left=left, moved=moved)

    def told(self) -> list[tuple[str, ProjectKind | None, Arrival | None]]:
        told, self.sink.told = self.sink.told, []
        return [(os.path.relpath(os.fsdecode(p), self.top), kind, how) for p, kind, how in told]

    def watched(self) -> set[str]:
        folders = self.watcher.folders(WatchPurpose.FRONTIER)
        return {os.path.relpath(os.fsdecode(path), self.top) for path in folders}


@pytest.fixture
def land(tmp_path: Path) -> Land:
    fake_repository(tmp_path / "acme" / "api")
    return Land(tmp_path)


GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


def test_only_the_frontier_is_watched(land: Land) -> None:
    assert land.watched() == {".", "acme"}
    assert land.territory.coverage is ScanCoverage.FULL
    assert land.territory.count_projects() == 1
    assert land.territory.has_project(raw(land.top / "acme" / "api"))


def test_a_new_deep_path_is_walked_and_watched(land: Land) -> None:
    fake_repository(land.top / "beta" / "x" / "web")
    land.changed(land.top, "beta")
    assert land.told() == [("beta/x/web", GIT, MADE)]
    assert land.watched() == {".", "acme", "beta", "beta/x"}


def test_what_comes_before_a_watch_is_renewed_is_listed(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder may be at the path by now: until it is watched, nothing is told of it."""
    watch = land.watcher.watch

    def late(folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        fake_repository(land.top / "acme" / "web")
        return watch(folder, purpose)

    monkeypatch.setattr(land.watcher, "watch", late)
    land.territory.look_at(raw(land.top / "acme"))
    assert ("acme/web", GIT, MADE) in land.told()


def test_what_was_moved_in_is_said_to_have_been_moved(land: Land) -> None:
    fake_repository(land.top / "beta" / "web")
    land.changed(land.top, "beta", moved=True)
    assert land.told() == [("beta/web", GIT, MOVED)]


def test_a_removed_subtree_is_lost_and_its_watches_are_given_back(land: Land) -> None:
    shutil.rmtree(land.top / "acme")
    land.changed(land.top, "acme", left=True)
    assert land.told() == [("acme/api", None, None)]
    assert land.watched() == {"."}


def test_a_replaced_folder_is_lost_and_found(land: Land) -> None:
    shutil.rmtree(land.top / "acme")
    fake_repository(land.top / "acme" / "api")
    land.changed(land.top, "acme", left=True)
    assert land.told() == [("acme/api", None, None), ("acme/api", GIT, MADE)]


def test_a_marker_makes_a_folder_a_project_and_its_watch_is_given_back(land: Land) -> None:
    (land.top / "acme" / "web" / "sub").mkdir(parents=True)
    land.changed(land.top / "acme", "web")
    assert land.watched() == {".", "acme", "acme/web", "acme/web/sub"}
    (land.top / "acme" / "web" / ".git").mkdir()
    land.changed(land.top / "acme" / "web", ".git")
    assert land.told() == [("acme/web", GIT, MADE)]
    assert land.watched() == {".", "acme"}


def test_a_marker_that_goes_makes_it_a_folder_again(land: Land) -> None:
    shutil.rmtree(land.top / "acme" / "api" / ".git")
    land.territory.sweep()
    assert land.told() == [("acme/api", None, None)]
    assert land.watched() == {".", "acme", "acme/api"}


def test_a_project_file_that_comes_and_goes(land: Land) -> None:
    (land.top / "acme" / "package.json").touch()
    land.changed(land.top / "acme", "package.json")
    told = land.told()
    assert ("acme", PROJECT, MADE) in told
    assert ("acme/api", GIT, FOUND) in told
    assert land.territory.has_project(raw(land.top / "acme" / "api"))
    (land.top / "acme" / "package.json").unlink()
    land.changed(land.top / "acme", "package.json", left=True)
    assert ("acme", None, None) in land.told()
    assert land.territory.count_projects() == 1


def test_below_a_new_project_folder_only_repositories_stay(land: Land) -> None:
    (land.top / "acme" / "tool").mkdir()
    (land.top / "acme" / "tool" / "go.mod").touch()
    land.changed(land.top / "acme", "tool")
    land.told()
    (land.top / "acme" / "package.json").touch()
    land.changed(land.top / "acme", "package.json")
    assert ("acme/tool", None, None) in land.told()
    assert land.territory.count_projects() == 2


def test_a_build_folder_is_hidden_by_a_project_file_beside_it(land: Land) -> None:
    fake_repository(land.top / "build" / "one")
    land.changed(land.top, "build")
    assert land.told() == [("build/one", GIT, MADE)]
    fake_repository(land.top / "app" / "build" / "two")
    (land.top / "app" / "go.mod").touch()
    land.changed(land.top, "app")
    assert land.told() == [("app", PROJECT, MADE)]


def test_a_folder_that_is_skipped_or_too_deep_is_not_walked(land: Land) -> None:
    for name in ("node_modules", ".hidden", "a/b/c/d/e"):
        fake_repository(land.top / name)
        land.changed(land.top, name.partition("/")[0])
    assert land.told() == []


def test_a_stale_hint_does_nothing(land: Land) -> None:
    land.changed(land.top / "gone", "x")
    land.changed(land.top, "gone")
    land.changed(land.top / "acme" / "api", "src")
    land.changed(land.top / "acme", "api")
    assert {kind for _, kind, _ in land.told()} <= {GIT}


def test_a_refresh_finds_everything_that_was_not_told(land: Land) -> None:
    fake_repository(land.top / "beta" / "web")
    fake_repository(land.top / "acme" / "new")
    shutil.rmtree(land.top / "acme" / "api")
    land.territory.refresh(thorough=False)
    assert sorted(land.told()) == [
        ("acme/api", None, None),
        ("acme/new", GIT, MADE),
        ("beta/web", GIT, MADE),
    ]


def test_a_refresh_tells_what_came_before_it_looks_at_the_roots_of_repositories(
    land: Land,
) -> None:
    api = land.top / "acme" / "api"
    shutil.rmtree(api / ".git")
    fake_repository(land.top / "acme" / "web")
    land.territory.refresh(thorough=False)
    assert land.told() == [("acme/web", GIT, MADE)]
    assert land.territory.is_behind()
    land.territory.catch_up(1)
    assert land.told() == [("acme/api", None, None)]
    assert not land.territory.is_behind()


def test_a_tree_that_is_dropped_is_not_caught_up_with(land: Land) -> None:
    land.territory.refresh(thorough=False)
    land.territory.abandon()
    assert not land.territory.is_behind()


def test_a_refresh_of_what_did_not_change_lists_nothing(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.disk.walk._CLOCK_SLACK_NS", -(10**18))
    monkeypatch.setattr("rootsd.discovery.parent_tree.racy_cutoff_ns", lambda: 2**62)
    land.territory.refresh(thorough=True)
    land.told()

    def never(path: bytes) -> None:
        raise AssertionError(f"listed {path!r}")

    monkeypatch.setattr(os, "scandir", never)
    land.territory.refresh(thorough=False)
    assert land.told() == []
    with pytest.raises(AssertionError, match="listed"):
        land.territory.refresh(thorough=True)


def test_a_parent_that_is_another_folder_now_is_not_current(land: Land) -> None:
    assert land.territory.is_current()
    land.top.rename(land.top.with_name("away"))
    assert not land.territory.is_current()
    land.top.mkdir()
    assert not land.territory.is_current()
    land.territory.explore(FOUND)
    assert land.territory.is_current()
    assert land.told() == [("acme/api", None, None)]
    assert land.territory.coverage is ScanCoverage.FULL


def test_a_parent_that_went_has_to_be_explored_though_the_same_inode_returns(land: Land) -> None:
    """A folder that is made right after one was removed often gets its inode."""
    away = land.top.rename(land.top.with_name("moved"))
    land.territory.look_at(raw(land.top))
    assert land.told() == [("acme/api", None, None)]
    away.rename(land.top)
    assert not land.territory.is_current()


def test_a_parent_that_could_not_be_read_has_to_be_explored(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is a mount's root, no watch can be set and no folder above is told of a chmod."""

    def refuse(_path: bytes) -> object:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        land.territory.look_at(raw(land.top))
    assert land.territory.coverage is ScanCoverage.NONE
    assert not land.territory.is_current()


def test_a_missing_parent_is_not_covered(tmp_path: Path) -> None:
    land = Land(tmp_path / "none")
    assert land.territory.coverage is ScanCoverage.NONE
    assert len(land.territory) == 0


def test_the_limit_of_watches_is_remembered(land: Land) -> None:
    assert land.territory.limit is None
    land.watcher.budget = 2
    (land.top / "beta").mkdir()
    land.changed(land.top, "beta")
    assert land.territory.limit is WatchOutcome.LIMIT
    assert raw(land.top / "beta") in land.territory


def test_progress_of_a_refresh_is_told(land: Land) -> None:
    for number in range(600):
        (land.top / str(number)).mkdir()
    land.territory.refresh(thorough=True)
    told: list[int] = []
    land.territory.refresh(thorough=True, progress=lambda folders, _: told.append(folders))
    assert told == [512]
