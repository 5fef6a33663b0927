"""The state of every kind of project, as the disk alone shows it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.host.complete import folders_at_work, is_git, state_of, untouched_for
from rootsd.host.markers import VCS_MARKERS
from rootsd.host.stages import Complete, Nothing, Pending, Stage
from support.repos import git, make_repository, raw


def test_a_clone_and_a_worktree_are_complete_and_say_what_they_are(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    assert state_of(raw(main), ProjectKind.GIT) == Complete(ProjectKind.GIT)
    tree = state_of(raw(tmp_path / "tree"), ProjectKind.GIT)
    assert tree == Complete(ProjectKind.GIT_WORKTREE, raw(main))


def test_jj_beside_git_wins(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    (main / ".jj").mkdir()
    assert state_of(raw(main), ProjectKind.GIT) == Pending(ProjectKind.JJ, Stage.JJ_STARTING)


@pytest.mark.parametrize("kind", [k for k in ProjectKind if k not in ("project", "uri")])
def test_a_folder_without_a_marker_is_nothing_or_not_begun(
    tmp_path: Path, kind: ProjectKind
) -> None:
    state = state_of(raw(tmp_path), kind)
    begun = kind in (ProjectKind.JJ, ProjectKind.HG)
    assert isinstance(state, Pending if begun else Nothing)


@pytest.mark.parametrize("marker", [b"_darcs", b".bzr", b".pijul", b".sl", b".svn"])
def test_kinds_told_by_their_marker_alone_are_never_whole_at_once(
    tmp_path: Path, marker: bytes
) -> None:
    (tmp_path / marker.decode()).mkdir()
    kind = VCS_MARKERS[marker]
    assert state_of(raw(tmp_path), kind) == Pending(kind, Stage.OTHER)


def test_a_git_file_that_leads_nowhere_is_pending(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /none")
    expected = Pending(ProjectKind.GIT, Stage.NO_GIT_DIR)
    assert state_of(raw(tmp_path), ProjectKind.GIT) == expected


def test_jj_goes_from_starting_to_quiet(tmp_path: Path) -> None:
    jj = tmp_path / ".jj"
    (jj / "repo" / "store").mkdir(parents=True)
    (jj / "working_copy").mkdir()
    (jj / "repo" / "store" / "type").write_text("git")
    assert state_of(raw(tmp_path), ProjectKind.JJ) == Pending(ProjectKind.JJ, Stage.JJ_STARTING)
    (jj / "working_copy" / "checkout").touch()
    assert state_of(raw(tmp_path), ProjectKind.JJ) == Pending(ProjectKind.JJ, Stage.JJ)
    (jj / "repo" / "store" / "git_target").write_text("../../../.git")
    make_repository(tmp_path)
    git("config", "remote.origin.url", "file:///none", cwd=tmp_path)
    assert state_of(raw(tmp_path), ProjectKind.JJ) == Pending(ProjectKind.JJ, Stage.CONNECTING)
    (tmp_path / ".git" / "objects" / "pack" / "pack_git2_1").touch()
    assert state_of(raw(tmp_path), ProjectKind.JJ) == Pending(ProjectKind.JJ, Stage.FETCHING)


def test_a_second_jj_workspace_is_followed(tmp_path: Path) -> None:
    (tmp_path / "first" / "store").mkdir(parents=True)
    (tmp_path / "first" / "store" / "type").write_text("simple")
    second = tmp_path / "second" / ".jj"
    (second / "working_copy").mkdir(parents=True)
    (second / "working_copy" / "checkout").touch()
    (second / "repo").write_text("../../first")
    state = state_of(raw(tmp_path / "second"), ProjectKind.JJ)
    assert state == Pending(ProjectKind.JJ, Stage.JJ)


def test_hg_by_its_files(tmp_path: Path) -> None:
    hg = tmp_path / ".hg"
    (hg / "store").mkdir(parents=True)
    assert state_of(raw(tmp_path), ProjectKind.HG) == Pending(ProjectKind.HG, Stage.HG_STARTING)
    (hg / "requires").touch()
    expected = Pending(ProjectKind.HG, Stage.HG_NO_DIRSTATE)
    assert state_of(raw(tmp_path), ProjectKind.HG) == expected
    (hg / "dirstate").touch()
    assert state_of(raw(tmp_path), ProjectKind.HG) == Complete(ProjectKind.HG)
    (hg / "wlock").symlink_to("host:1")
    assert state_of(raw(tmp_path), ProjectKind.HG) == Pending(ProjectKind.HG, Stage.HG_LOCKED)


@pytest.mark.needs("hg")
def test_a_real_hg_clone_is_whole(tmp_path: Path) -> None:
    subprocess.run(["hg", "init", tmp_path / "up"], check=True)
    (tmp_path / "up" / "file").touch()
    for command in (["add"], ["commit", "-m", "one", "-u", "a"]):
        subprocess.run(["hg", *command], cwd=tmp_path / "up", check=True)
    subprocess.run(["hg", "clone", "-q", tmp_path / "up", tmp_path / "one"], check=True)
    assert state_of(raw(tmp_path / "one"), ProjectKind.HG) == Complete(ProjectKind.HG)


def test_the_folders_to_watch_are_those_that_the_maker_writes(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    data = raw(main / ".git")
    assert folders_at_work(raw(main), ProjectKind.GIT) == (data, data + b"/objects/pack")
    tree = folders_at_work(raw(tmp_path / "tree"), ProjectKind.GIT)
    assert tree == (data + b"/worktrees/tree", data + b"/objects/pack")
    assert folders_at_work(raw(tmp_path), ProjectKind.PROJECT) == ()


def test_git_kinds() -> None:
    assert is_git(ProjectKind.GIT_BARE)
    assert not is_git(ProjectKind.JJ)


def test_the_newest_change_counts_and_nothing_is_as_old_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", tmp_path / "one")
    head = (tmp_path / "one" / ".git" / "HEAD").stat().st_ctime
    monkeypatch.setattr(time, "time", lambda: head + 60)
    assert 0 < untouched_for(raw(tmp_path / "one"), ProjectKind.GIT) <= 60
    monkeypatch.setattr(time, "time", lambda: head - 60)
    assert untouched_for(raw(tmp_path / "one"), ProjectKind.GIT) == 0
    assert untouched_for(raw(tmp_path / "none"), ProjectKind.GIT) == 0
