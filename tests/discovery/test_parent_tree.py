"""After every kind of reported change, the tree of a parent agrees with the disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rootsd.core.model import Parent, ProjectKind, ScanCoverage
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.parent_tree import ParentTree
from rootsd.disk.markers import WalkRules
from rootsd.watch.events import WatchOutcome, WatchPurpose
from support.fake_watchers import RecordingWatcher
from support.repositories import fake_repository, raw
from support.tree_observers import RecordingObserver

FOUND, MADE, MOVED = Arrival.FOUND, Arrival.CREATED, Arrival.MOVED


class TreeHarness:
    """A tree over a folder, with its watches and reports."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.watcher = RecordingWatcher()
        self.sink = RecordingObserver()
        parent = Parent(raw(top))
        self.tree = ParentTree(parent, WalkRules.of(parent), self.watcher, self.sink)
        self.tree.explore(FOUND)
        self.sink.reported.clear()

    def changed(self, folder: Path, name: str, removed: bool = False, moved: bool = False) -> None:
        self.tree.entry_changed(raw(folder), name.encode(), removed=removed, moved=moved)

    def reported(self) -> list[tuple[str, ProjectKind | None, Arrival | None]]:
        reported, self.sink.reported = self.sink.reported, []
        return [
            (os.path.relpath(os.fsdecode(p), self.top), kind, how) for p, kind, how in reported
        ]

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
    assert harness.tree.coverage is ScanCoverage.FULL
    assert harness.tree.count_projects() == 1
    assert harness.tree.has_project(raw(harness.top / "acme" / "api"))


def test_a_new_deep_path_is_walked_and_watched(harness: TreeHarness) -> None:
    fake_repository(harness.top / "beta" / "x" / "web")
    harness.changed(harness.top, "beta")
    assert harness.reported() == [("beta/x/web", GIT, MADE)]
    assert harness.watched() == {".", "acme", "beta", "beta/x"}


def test_entries_created_before_a_watch_is_renewed_are_listed(
    harness: TreeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path may have another folder now. There are no events about it until it is watched."""
    watch = harness.watcher.watch

    def late(folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        if folder == raw(harness.top / "acme"):
            fake_repository(harness.top / "acme" / "web")
        return watch(folder, purpose)

    monkeypatch.setattr(harness.watcher, "watch", late)
    harness.tree.relist(raw(harness.top / "acme"))
    assert ("acme/web", GIT, MADE) in harness.reported()


def test_a_project_moved_in_is_reported_as_moved(harness: TreeHarness) -> None:
    fake_repository(harness.top / "beta" / "web")
    harness.changed(harness.top, "beta", moved=True)
    assert harness.reported() == [("beta/web", GIT, MOVED)]


def test_a_removed_subtree_is_lost_and_its_watches_are_removed(harness: TreeHarness) -> None:
    shutil.rmtree(harness.top / "acme")
    harness.changed(harness.top, "acme", removed=True)
    assert harness.reported() == [("acme/api", None, None)]
    assert harness.watched() == {"."}


def test_a_replaced_folder_is_lost_and_found(harness: TreeHarness) -> None:
    shutil.rmtree(harness.top / "acme")
    fake_repository(harness.top / "acme" / "api")
    harness.changed(harness.top, "acme", removed=True)
    assert harness.reported() == [("acme/api", None, None), ("acme/api", GIT, MADE)]


def test_a_marker_makes_a_folder_a_project_and_its_watch_is_removed(harness: TreeHarness) -> None:
    (harness.top / "acme" / "web" / "sub").mkdir(parents=True)
    harness.changed(harness.top / "acme", "web")
    assert harness.watched() == {".", "acme", "acme/web", "acme/web/sub"}
    (harness.top / "acme" / "web" / ".git").mkdir()
    harness.changed(harness.top / "acme" / "web", ".git")
    assert harness.reported() == [("acme/web", GIT, MADE)]
    assert harness.watched() == {".", "acme"}


def test_a_removed_marker_makes_it_a_folder_again(harness: TreeHarness) -> None:
    shutil.rmtree(harness.top / "acme" / "api" / ".git")
    harness.tree.sweep()
    assert harness.reported() == [("acme/api", None, None)]
    assert harness.watched() == {".", "acme", "acme/api"}


def test_a_project_file_is_created_and_removed(harness: TreeHarness) -> None:
    (harness.top / "acme" / "package.json").touch()
    harness.changed(harness.top / "acme", "package.json")
    reported = harness.reported()
    assert ("acme", PROJECT, MADE) in reported
    assert ("acme/api", GIT, FOUND) in reported
    assert harness.tree.has_project(raw(harness.top / "acme" / "api"))
    (harness.top / "acme" / "package.json").unlink()
    harness.changed(harness.top / "acme", "package.json", removed=True)
    assert ("acme", None, None) in harness.reported()
    assert harness.tree.count_projects() == 1


def test_below_a_new_project_folder_only_repositories_stay(harness: TreeHarness) -> None:
    (harness.top / "acme" / "tool").mkdir()
    (harness.top / "acme" / "tool" / "go.mod").touch()
    harness.changed(harness.top / "acme", "tool")
    harness.reported()
    (harness.top / "acme" / "package.json").touch()
    harness.changed(harness.top / "acme", "package.json")
    assert ("acme/tool", None, None) in harness.reported()
    assert harness.tree.count_projects() == 2


def test_a_stale_event_does_nothing(harness: TreeHarness) -> None:
    harness.changed(harness.top / "gone", "x")
    harness.changed(harness.top, "gone")
    harness.changed(harness.top / "acme" / "api", "src")
    harness.changed(harness.top / "acme", "api")
    assert {kind for _, kind, _ in harness.reported()} <= {GIT}


def test_a_refresh_finds_all_unreported_changes(harness: TreeHarness) -> None:
    fake_repository(harness.top / "beta" / "web")
    fake_repository(harness.top / "acme" / "new")
    shutil.rmtree(harness.top / "acme" / "api")
    harness.tree.refresh(thorough=False)
    assert sorted(harness.reported()) == [
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
    harness.tree.refresh(thorough=False)
    assert harness.reported() == [("acme/web", GIT, MADE)]
    assert harness.tree.has_deferred_work()
    harness.tree.catch_up(1)
    assert harness.reported() == [("acme/api", None, None)]
    assert not harness.tree.has_deferred_work()


def test_a_dropped_tree_is_not_refreshed(harness: TreeHarness) -> None:
    harness.tree.refresh(thorough=False)
    harness.tree.abandon()
    assert not harness.tree.has_deferred_work()


def test_a_refresh_without_changes_lists_no_folder(
    harness: TreeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.disk.file_clock._SLACK_NS", -(10**18))
    monkeypatch.setattr("rootsd.discovery.parent_tree.racy_cutoff_ns", lambda: 2**62)
    harness.tree.refresh(thorough=True)
    harness.reported()

    def never(path: bytes) -> None:
        raise AssertionError(f"listed {path!r}")

    monkeypatch.setattr(os, "scandir", never)
    harness.tree.refresh(thorough=False)
    assert harness.reported() == []
    with pytest.raises(AssertionError, match="listed"):
        harness.tree.refresh(thorough=True)


def test_a_replaced_parent_is_not_current(harness: TreeHarness) -> None:
    assert harness.tree.is_current()
    harness.top.rename(harness.top.with_name("away"))
    assert not harness.tree.is_current()
    harness.top.mkdir()
    assert not harness.tree.is_current()
    harness.tree.explore(FOUND)
    assert harness.tree.is_current()
    assert harness.reported() == [("acme/api", None, None)]
    assert harness.tree.coverage is ScanCoverage.FULL


def test_a_removed_parent_is_scanned_again_even_with_the_same_inode(harness: TreeHarness) -> None:
    """A folder created right after another was removed often gets its inode."""
    away = harness.top.rename(harness.top.with_name("moved"))
    harness.tree.relist(raw(harness.top))
    assert harness.reported() == [("acme/api", None, None)]
    away.rename(harness.top)
    assert not harness.tree.is_current()


def test_an_unreadable_parent_is_scanned_again(
    harness: TreeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the parent is a mount point, no watch reports a chmod: not its own, nor one above it."""

    def refuse(_path: bytes) -> object:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        harness.tree.relist(raw(harness.top))
    assert harness.tree.coverage is ScanCoverage.NONE
    assert not harness.tree.is_current()


def test_the_limit_of_watches_is_remembered(harness: TreeHarness) -> None:
    assert harness.tree.limit is None
    harness.watcher.budget = 2
    (harness.top / "beta").mkdir()
    harness.changed(harness.top, "beta")
    assert harness.tree.limit is WatchOutcome.LIMIT
    assert raw(harness.top / "beta") in harness.tree
