"""The origin and the branch of a repository, by its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.disk.git_settings import read_settings
from rootsd.vcs.git.config import is_safe_for_libgit2, read_git_config
from rootsd.vcs.origin import git_dirs_of, read_branch, read_origin
from support.repositories import git, make_repository, raw

GIT = ProjectKind.GIT


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "one")


def _set_remote(repository: Path, name: str, address: str) -> None:
    git("remote", "add", name, address, cwd=repository)


def test_origin_counts_before_other_remotes_and_loses_its_password(repository: Path) -> None:
    assert read_origin(raw(repository), GIT) is None
    _set_remote(repository, "fork", "https://example.org/fork")
    assert read_origin(raw(repository), GIT) == "https://example.org/fork"
    _set_remote(repository, "origin", "https://ann:s3cr3t@example.org/one")
    assert read_origin(raw(repository), GIT) == "https://example.org/one"


def test_worktrees_and_bare_repositories_have_an_origin(repository: Path, tmp_path: Path) -> None:
    _set_remote(repository, "origin", "git@example.org:one")
    git("worktree", "add", "-b", "other", tmp_path / "tree", cwd=repository)
    tree = raw(tmp_path / "tree")
    assert read_origin(tree, ProjectKind.GIT_WORKTREE) == "git@example.org:one"
    assert read_branch(tree, ProjectKind.GIT_WORKTREE) == "other"
    git("clone", "--bare", repository, tmp_path / "bare.git")
    assert read_origin(raw(tmp_path / "bare.git"), ProjectKind.GIT_BARE) == str(repository)
    assert read_branch(raw(tmp_path / "bare.git"), ProjectKind.GIT_BARE) == "main"


def test_a_detached_head_and_a_reftable_head_name_no_branch(repository: Path) -> None:
    assert read_branch(raw(repository), GIT) == "main"
    git("checkout", "--detach", cwd=repository)
    assert read_branch(raw(repository), GIT) is None
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    assert read_branch(raw(repository), GIT) is None


def test_settings_are_read_as_git_writes_them_and_includes_are_not_followed(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "more").write_text("[core]\n\tpager = evil\n")
    with (repository / ".git" / "config").open("a") as config:
        config.write(f'[include]\n\tpath = {tmp_path / "more"}\n[a "b"] C = "d e"\n')
    place = git_dirs_of(raw(repository), GIT)
    assert place is not None
    settings = dict(read_settings(read_git_config(place)))
    assert settings["a.b.c"] == b"d e"
    assert settings["core.bare"] == b"false"
    assert "core.pager" not in settings


def test_a_fifo_or_a_large_configuration_is_not_safe_for_libgit2(repository: Path) -> None:
    place = git_dirs_of(raw(repository), GIT)
    assert place is not None
    assert is_safe_for_libgit2(place)
    config = repository / ".git" / "config"
    config.write_bytes(b"#" * (256 << 10))
    assert not is_safe_for_libgit2(place)
    config.unlink()
    os.mkfifo(config)
    assert not is_safe_for_libgit2(place)
    assert read_origin(raw(repository), GIT) is None


def test_the_origin_of_jj_is_in_its_git_store(tmp_path: Path) -> None:
    """From its documented layout, not colocated."""
    store = tmp_path / ".jj" / "repo" / "store"
    store.mkdir(parents=True)
    assert read_origin(raw(tmp_path), ProjectKind.JJ) is None
    git("init", "--bare", store / "git")
    (store / "git_target").write_text("git")
    git("remote", "add", "origin", "https://example.org/j", cwd=store / "git")
    assert read_origin(raw(tmp_path), ProjectKind.JJ) == "https://example.org/j"


def test_a_folder_without_a_repository_has_no_origin(tmp_path: Path) -> None:
    for kind in ProjectKind:
        assert read_origin(raw(tmp_path), kind) is None
