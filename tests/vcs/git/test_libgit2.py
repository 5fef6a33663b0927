"""The last commit, read with libgit2."""

from __future__ import annotations

from pathlib import Path

import pygit2
import pytest

from rootsd.vcs.git.libgit2 import last_commit
from support.repos import git, make_repository, raw


def test_the_commit_that_is_checked_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("commit", "--allow-empty", "-m", "Say it\n\nmore", cwd=repository)
    git("worktree", "add", "--detach", tmp_path / "tree", "HEAD~1", cwd=repository)
    told = last_commit(raw(repository))
    assert told is not None
    assert told["summary"] == "Say it"
    assert told["at"].endswith("Z")
    assert len(told["id"]) == 40
    tree = last_commit(raw(tmp_path / "tree"))
    assert tree is not None
    assert tree["summary"] == "one"


def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    assert last_commit(raw(tmp_path / "one")) is None


def test_no_repository_above_the_folder_is_used(tmp_path: Path) -> None:
    make_repository(tmp_path)
    (tmp_path / "below").mkdir()
    with pytest.raises(pygit2.GitError):
        last_commit(raw(tmp_path / "below"))
