"""An open project is one folder and its git data, as they were opened."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rootsd.core.model import ProjectKind
from rootsd.disk.identity import identify
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.probe import project_state
from rootsd.vcs.stages import CompleteProject, NoProject
from support.repositories import fake_repository, git, make_repository, raw

GIT, BARE = ProjectKind.GIT, ProjectKind.GIT_BARE


def test_state_and_identity_are_of_the_same_folder(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    identity = identify(raw(one))
    with OpenProject(raw(one)) as look:
        one.rename(tmp_path / "moved")
        one.mkdir()
        assert project_state(look, GIT) == CompleteProject(GIT)
        assert look.identity() == identity
    with OpenProject(raw(one)) as look:
        assert project_state(look, GIT) == NoProject()


def test_git_data_are_opened_once(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    with OpenProject(raw(one)) as look:
        first = look.git(GIT)
        shutil.rmtree(one / ".git")
        assert first is not None
        assert look.git(GIT) is first
        assert look.git(ProjectKind.HG) is None


def test_a_bare_repository_is_its_own_folder(tmp_path: Path) -> None:
    make_repository(tmp_path / "up")
    git("clone", "--bare", tmp_path / "up", tmp_path / "bare.git")
    with OpenProject(raw(tmp_path / "bare.git")) as look:
        repository = look.git(BARE)
        assert repository is not None
        assert repository.folder is repository.common is repository.work is look
        assert look.git(GIT) is None


def test_a_closed_project_leaves_no_descriptor_open(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    git("clone", "--bare", main, tmp_path / "bare.git")
    before = len(os.listdir("/dev/fd"))
    for name, kind in (("main", GIT), ("tree", GIT), ("bare.git", BARE), ("none", GIT)):
        with OpenProject(raw(tmp_path / name)) as look:
            project_state(look, kind)
    assert len(os.listdir("/dev/fd")) <= before
