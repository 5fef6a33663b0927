"""The worktrees that a repository links to, in every layout; only those that link back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.vcs.git.worktrees import linked_worktrees, worktree_entries, worktrees_folder
from support.repositories import git, make_repository, raw


@pytest.fixture
def up(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "up")


def _trees(main: Path) -> set[bytes]:
    folder = worktrees_folder(raw(main))
    return set() if folder is None else set(linked_worktrees(worktree_entries(folder)))


def test_a_repository_without_worktrees_links_to_none(up: Path, tmp_path: Path) -> None:
    assert worktrees_folder(raw(up)) is None
    assert worktrees_folder(raw(tmp_path)) is None
    assert worktrees_folder(raw(tmp_path / "none")) is None


def test_worktrees_of_a_checkout_are_found_anywhere(up: Path, tmp_path: Path) -> None:
    places = [tmp_path / "beside", up / ".worktrees" / "inside"]
    for number, place in enumerate(places):
        git("worktree", "add", "-b", f"b{number}", place, cwd=up)
    assert _trees(up) == set(map(raw, places))
    assert _trees(places[0]) == set()


def test_worktrees_of_a_bare_repository_are_found(up: Path, tmp_path: Path) -> None:
    git("clone", "--bare", up, tmp_path / "bare.git")
    git("worktree", "add", tmp_path / "tree", cwd=tmp_path / "bare.git")
    assert _trees(tmp_path / "bare.git") == {raw(tmp_path / "tree")}


def test_worktrees_beside_a_hidden_bare_repository_are_found(up: Path, tmp_path: Path) -> None:
    top = tmp_path / "proj"
    git("clone", "--bare", up, top / ".bare")
    (top / ".git").write_text("gitdir: ./.bare\n")
    git("worktree", "add", "main", cwd=top)
    git("worktree", "add", "-b", "other", "other", cwd=top)
    assert _trees(top) == {raw(top / "main"), raw(top / "other")}


def test_worktrees_of_a_separate_git_dir_are_found(up: Path, tmp_path: Path) -> None:
    git("clone", f"--separate-git-dir={tmp_path / 'data'}", up, tmp_path / "one")
    git("worktree", "add", "-b", "x", tmp_path / "tree", cwd=tmp_path / "one")
    assert _trees(tmp_path / "one") == {raw(tmp_path / "tree")}


def test_only_a_link_in_the_place_of_git_is_followed(up: Path, tmp_path: Path) -> None:
    git("worktree", "add", tmp_path / "tree", cwd=up)
    assert _trees(up) == {raw(tmp_path / "tree")}
    (tmp_path / "way").symlink_to(up)
    assert worktrees_folder(raw(tmp_path / "way")) is None
    (tmp_path / "has-link").mkdir()
    (tmp_path / "has-link" / ".git").symlink_to(up / ".git")
    assert worktrees_folder(raw(tmp_path / "has-link")) == raw(up / ".git" / "worktrees")
    links = up / ".git" / "worktrees"
    links.rename(tmp_path / "moved")
    links.symlink_to(tmp_path / "moved")
    assert worktrees_folder(raw(up)) is None


def test_a_worktree_without_a_link_back_is_not_linked(up: Path, tmp_path: Path) -> None:
    git("worktree", "add", tmp_path / "tree", cwd=up)
    make_repository(tmp_path / "victim")
    entry = up / ".git" / "worktrees" / "tree"
    for target in (tmp_path / "victim" / ".git", tmp_path / "none", Path("/")):
        (entry / "gitdir").write_text(f"{target}\n")
        assert worktree_entries(raw(entry.parent)) == [raw(entry)]
        assert _trees(up) == set()
    (entry / "gitdir").unlink()
    assert _trees(up) == set()


def test_a_worktree_that_was_moved_away_is_not_linked(up: Path, tmp_path: Path) -> None:
    git("worktree", "add", tmp_path / "tree", cwd=up)
    shutil.move(tmp_path / "tree", tmp_path / "moved")
    assert _trees(up) == set()
