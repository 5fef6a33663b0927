"""One parent's tree agrees with the disk after every kind of reported change."""

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
from support.fake_watchers import RememberingWatcher
from support.repositories import fake_repository, raw

FOUND, MADE, MOVED = Arrival.FOUND, Arrival.MADE, Arrival.MOVED


class RecordingObserver:
    """A `TreeObserver` that records its calls."""

    def __init__(self) -> None:
        self.told: list[tuple[bytes, ProjectKind | None, Arrival | None]] = []

    def found(self, path: bytes, kind: ProjectKind, arrival: Arrival) -> None:
        self.told.append((path, kind, arrival))

    def remembered(self, path: bytes) -> None:
        """Count the projects from a saved tree; `found` follows."""

    def lost(self, path: bytes) -> None:
        self.told.append((path, None, None))


class TreeHarness:
    """A tree over a folder, with its watches and reports."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.watcher = RememberingWatcher()
        self.sink = RecordingObserver()
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
def harness(tmp_path: Path) -> TreeHarness:
    fake_repository(tmp_path / "acme" / "api")
    return TreeHarness(tmp_path)


GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


def test_only_the_frontier_is_watched(harness: TreeHarness) -> None:
    assert harness.watched() == {".", "acme"}
    assert harness.territory.coverage is ScanCoverage.FULL
    assert harness.territory.count_projects() == 1
    assert harness.territory.has_project(raw(harness.top / "acme" / "api"))


def test_a_new_deep_path_is_walked_and_watched(harness: TreeHarness) -> None:
    fake_repository(harness.top / "beta" / "x" / "web")
    harness.changed(harness.top, "beta")
    assert harness.told() == [("beta/x/web", GIT, MADE)]
    assert harness.watched() == {".", "acme", "beta", "beta/x"}


def test_entries_created_before_a_watch_is_renewed_are_listed(
    harness: TreeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder may now be at the path. Until it is watched, nothing in it is reported."""
    watch = harness.watcher.watch

    def late(folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        fake_repository(harness.top / "acme" / "web")
        return watch(folder, purpose)

    monkeypatch.setattr(harness.watcher, "watch", late)
    harness.territory.look_at(raw(harness.top / "acme"))
    assert ("acme/web", GIT, MADE) in harness.told()


def test_a_project_moved_in_is_reported_as_moved(harness: TreeHarness) -> None:
    fake_repository(harness.top / "beta" / "web")
    harness.changed(harness.top, "beta", moved=True)
    assert harness.told() == [("beta/web", GIT, MOVED)]


def test_a_removed_subtree_is_lost_and_its_watches_are_removed(harness: TreeHarness) -> None:
    shutil.rmtree(harness.top / "acme")
    harness.changed(harness.top, "acme", left=True)
    assert harness.told() == [("acme/api", None, None)]
    assert harness.watched() == {"."}


def test_a_replaced_folder_is_lost_and_found(harness: TreeHarness) -> None:
    shutil.rmtree(harness.top / "acme")
    fake_repository(harness.top / "acme" / "api")
    harness.changed(harness.top, "acme", left=True)
    assert harness.told() == [("acme/api", None, None), ("acme/api", GIT, MADE)]


def test_a_marker_makes_a_folder_a_project_and_its_watch_is_removed(harness: TreeHarness) -> None:
    (harness.top / "acme" / "web" / "sub").mkdir(parents=True)
    harness.changed(harness.top / "acme", "web")
    assert harness.watched() == {".", "acme", "acme/web", "acme/web/sub"}
    (harness.top / "acme" / "web" / ".git").mkdir()
    harness.changed(harness.top / "acme" / "web", ".git")
    assert harness.told() == [("acme/web", GIT, MADE)]
    assert harness.watched() == {".", "acme"}


def test_a_removed_marker_makes_it_a_folder_again(harness: TreeHarness) -> None:
    shutil.rmtree(harness.top / "acme" / "api" / ".git")
    harness.territory.sweep()
    assert harness.told() == [("acme/api", None, None)]
    assert harness.watched() == {".", "acme", "acme/api"}


def test_a_project_file_is_created_and_removed(harness: TreeHarness) -> None:
    (harness.top / "acme" / "package.json").touch()
    harness.changed(harness.top / "acme", "package.json")
    told = harness.told()
    assert ("acme", PROJECT, MADE) in told
    assert ("acme/api", GIT, FOUND) in told
    assert harness.territory.has_project(raw(harness.top / "acme" / "api"))
    (harness.top / "acme" / "package.json").unlink()
    harness.changed(harness.top / "acme", "package.json", left=True)
    assert ("acme", None, None) in harness.told()
    assert harness.territory.count_projects() == 1


def test_below_a_new_project_folder_only_repositories_stay(harness: TreeHarness) -> None:
    (harness.top / "acme" / "tool").mkdir()
    (harness.top / "acme" / "tool" / "go.mod").touch()
    harness.changed(harness.top / "acme", "tool")
    harness.told()
    (harness.top / "acme" / "package.json").touch()
    harness.changed(harness.top / "acme", "package.json")
    assert ("acme/tool", None, None) in harness.told()
    assert harness.territory.count_projects() == 2


def test_a_build_folder_is_hidden_by_a_project_file_beside_it(harness: TreeHarness) -> None:
    fake_repository(harness.top / "build" / "one")
    harness.changed(harness.top, "build")
    assert harness.told() == [("build/one", GIT, MADE)]
    fake_repository(harness.top / "app" / "build" / "two")
    (harness.top / "app" / "go.mod").touch()
    harness.changed(harness.top, "app")
    assert harness.told() == [("app", PROJECT, MADE)]


def test_a_folder_that_is_skipped_or_too_deep_is_not_walked(harness: TreeHarness) -> None:
    for name in ("node_modules", ".hidden", "a/b/c/d/e"):
        fake_repository(harness.top / name)
        harness.changed(harness.top, name.partition("/")[0])
    assert harness.told() == []


def test_a_stale_event_does_nothing(harness: TreeHarness) -> None:
    harness.changed(harness.top / "gone", "x")
    harness.changed(harness.top, "gone")
    harness.changed(harness.top / "acme" / "api", "src")
    harness.changed(harness.top / "acme", "api")
    assert {kind for _, kind, _ in harness.told()} <= {GIT}


def test_a_refresh_finds_all_unreported_changes(harness: TreeHarness) -> None:
    fake_repository(harness.top / "beta" / "web")
    fake_repository(harness.top / "acme" / "new")
    shutil.rmtree(harness.top / "acme" / "api")
    harness.territory.refresh(thorough=False)
    assert sorted(harness.told()) == [
        ("acme/api", None, None),
        ("acme/new", GIT, MADE),
        ("beta/web", GIT, MADE),
    ]


def test_a_refresh_reports_new_projects_before_it_checks_repositories(
    harness: TreeHarness,
) -> None:
    api = harness.top / "acme" / "api"
    shutil.rmtree(api / ".git")
    fake_repository(harness.top / "acme" / "web")
    harness.territory.refresh(thorough=False)
    assert harness.told() == [("acme/web", GIT, MADE)]
    assert harness.territory.is_behind()
    harness.territory.catch_up(1)
    assert harness.told() == [("acme/api", None, None)]
    assert not harness.territory.is_behind()


def test_a_dropped_tree_is_not_refreshed(harness: TreeHarness) -> None:
    harness.territory.refresh(thorough=False)
    harness.territory.abandon()
    assert not harness.territory.is_behind()


def test_a_refresh_without_changes_lists_no_folder(
    harness: TreeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.disk.walk._CLOCK_SLACK_NS", -(10**18))
    monkeypatch.setattr("rootsd.discovery.parent_tree.racy_cutoff_ns", lambda: 2**62)
    harness.territory.refresh(thorough=True)
    harness.told()

    def never(path: bytes) -> None:
        raise AssertionError(f"listed {path!r}")

    monkeypatch.setattr(os, "scandir", never)
    harness.territory.refresh(thorough=False)
    assert harness.told() == []
    with pytest.raises(AssertionError, match="listed"):
        harness.territory.refresh(thorough=True)


def test_a_replaced_parent_is_not_current(harness: TreeHarness) -> None:
    assert harness.territory.is_current()
    harness.top.rename(harness.top.with_name("away"))
    assert not harness.territory.is_current()
    harness.top.mkdir()
    assert not harness.territory.is_current()
    harness.territory.explore(FOUND)
    assert harness.territory.is_current()
    assert harness.told() == [("acme/api", None, None)]
    assert harness.territory.coverage is ScanCoverage.FULL


def test_a_removed_parent_is_scanned_again_even_with_the_same_inode(harness: TreeHarness) -> None:
    """A folder created right after another was removed often gets its inode."""
    away = harness.top.rename(harness.top.with_name("moved"))
    harness.territory.look_at(raw(harness.top))
    assert harness.told() == [("acme/api", None, None)]
    away.rename(harness.top)
    assert not harness.territory.is_current()


def test_an_unreadable_parent_is_scanned_again(
    harness: TreeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is a mount's root, it cannot be watched, and no folder above reports a chmod."""

    def refuse(_path: bytes) -> object:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        harness.territory.look_at(raw(harness.top))
    assert harness.territory.coverage is ScanCoverage.NONE
    assert not harness.territory.is_current()


def test_a_missing_parent_is_not_covered(tmp_path: Path) -> None:
    harness = TreeHarness(tmp_path / "none")
    assert harness.territory.coverage is ScanCoverage.NONE
    assert len(harness.territory) == 0


def test_the_limit_of_watches_is_remembered(harness: TreeHarness) -> None:
    assert harness.territory.limit is None
    harness.watcher.budget = 2
    (harness.top / "beta").mkdir()
    harness.changed(harness.top, "beta")
    assert harness.territory.limit is WatchOutcome.LIMIT
    assert raw(harness.top / "beta") in harness.territory


def test_progress_of_a_refresh_is_reported(harness: TreeHarness) -> None:
    for number in range(600):
        (harness.top / str(number)).mkdir()
    harness.territory.refresh(thorough=True)
    told: list[int] = []
    harness.territory.refresh(thorough=True, progress=lambda folders, _: told.append(folders))
    assert told == [512]
