"""The tracker watches a repository's worktree links, and each entry until it has its link."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.core.model import Parent
from rootsd.discovery.worktrees import WorktreeTracker, is_skipped
from rootsd.watch.events import WatchPurpose
from support.fake_watchers import RecordingWatcher
from support.repositories import git, make_repository, raw

LINKS = WatchPurpose.LINKS
NONE: frozenset[bytes] = frozenset()


@pytest.fixture
def up(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "up")


def test_a_repository_without_worktrees_needs_no_watch(up: Path) -> None:
    watcher = RecordingWatcher()
    assert WorktreeTracker(watcher).read_links(raw(up)) == NONE
    assert watcher.count() == 0


def test_the_git_folder_of_a_root_is_watched_for_its_first_worktree(up: Path) -> None:
    watcher = RecordingWatcher()
    tracker = WorktreeTracker(watcher)
    tracker.set_roots({raw(up)})
    assert watcher.folders(LINKS) == {raw(up / ".git")}
    assert tracker.owner(raw(up / ".git")) == raw(up)
    assert tracker.read_links(raw(up)) == NONE
    tracker.drop(raw(up))
    assert watcher.folders(LINKS) == {raw(up / ".git")}
    tracker.set_roots(NONE)
    assert watcher.count() == 0
    assert tracker.owner(raw(up / ".git")) is None


def test_worktrees_are_added_and_removed(up: Path, tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    tracker = WorktreeTracker(watcher)
    tree, folder = tmp_path / "tree", up / ".git" / "worktrees"
    git("worktree", "add", tree, cwd=up)
    assert tracker.read_links(raw(up)) == {raw(tree)}
    assert watcher.folders(LINKS) == {raw(folder), raw(folder / "tree")}
    assert tracker.owner(raw(folder)) == raw(up)
    git("worktree", "add", tmp_path / "more", cwd=up)
    git("worktree", "remove", tree, cwd=up)
    assert tracker.read_links(raw(up)) == {raw(tmp_path / "more")}
    assert tracker.take_unlinked() == [raw(tree)]
    git("worktree", "remove", tmp_path / "more", cwd=up)
    assert tracker.read_links(raw(up)) == NONE
    assert tracker.take_unlinked() == [raw(tmp_path / "more")]
    assert watcher.count() == 0


def test_an_entry_is_watched_before_and_after_it_has_its_link(up: Path, tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    tracker = WorktreeTracker(watcher)
    tree, entry = tmp_path / "tree", up / ".git" / "worktrees" / "tree"
    git("worktree", "add", tree, cwd=up)
    (entry / "gitdir").rename(tmp_path / "kept")
    assert tracker.read_links(raw(up)) == NONE
    assert watcher.folders(LINKS) == {raw(entry), raw(entry.parent)}
    (tmp_path / "kept").rename(entry / "gitdir")
    assert tracker.read_links(raw(up)) == {raw(tree)}
    assert watcher.folders(LINKS) == {raw(entry), raw(entry.parent)}


def test_a_dropped_repository_removes_its_watches(up: Path, tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    tracker = WorktreeTracker(watcher)
    git("worktree", "add", tmp_path / "tree", cwd=up)
    tracker.read_links(raw(up))
    shutil.rmtree(up)
    tracker.drop(raw(up))
    assert tracker.take_unlinked() == [raw(tmp_path / "tree")]
    tracker.drop(raw(up))
    assert tracker.take_unlinked() == []
    assert watcher.count() == 0


def test_a_parents_skip_also_applies_to_worktrees() -> None:
    parent = Parent(b"/src", skip=(b"tmp-*", b"old"))
    assert is_skipped(b"/src/x/tmp-1/tree", parent)
    assert is_skipped(b"/src/old", parent)
    assert not is_skipped(b"/src/.hidden/older", parent)
    assert not is_skipped(b"/src/a", Parent(b"/src"))
