"""The state of every kind of project, by the disk alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.disk.markers import VCS_MARKERS
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.probe import progress_folders, project_state
from rootsd.vcs.registry import ALL_KINDS
from rootsd.vcs.stages import CompleteProject, NoProject, PendingProject, ProjectState, Stage
from support.repositories import git, make_repository, raw


def _state(path: Path, kind: ProjectKind) -> ProjectState:
    with OpenProject(raw(path)) as look:
        return project_state(look, kind)


def test_a_clone_and_a_worktree_are_complete_with_their_kinds(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    assert _state(main, ProjectKind.GIT) == CompleteProject(ProjectKind.GIT)
    tree = _state(tmp_path / "tree", ProjectKind.GIT)
    assert tree == CompleteProject(ProjectKind.GIT_WORKTREE, raw(main))


def test_jj_beside_git_wins(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    (main / ".jj").mkdir()
    assert _state(main, ProjectKind.GIT) == PendingProject(ProjectKind.JJ, Stage.STARTING)


@pytest.mark.parametrize("kind", [each.kind for each in ALL_KINDS])
def test_a_folder_without_a_marker_is_not_a_project(tmp_path: Path, kind: ProjectKind) -> None:
    assert _state(tmp_path, kind) == NoProject()


# Not those of git, and not the files of Fossil.
_DATA_FOLDERS = sorted(
    marker
    for vcs in ALL_KINDS
    for marker in vcs.kind.markers
    if vcs.kind not in (ProjectKind.GIT, ProjectKind.FOSSIL)
)


@pytest.mark.parametrize("marker", _DATA_FOLDERS)
def test_an_empty_data_folder_of_another_vcs_is_starting(tmp_path: Path, marker: bytes) -> None:
    (tmp_path / marker.decode()).mkdir()
    kind = VCS_MARKERS[marker]
    assert _state(tmp_path, kind) == PendingProject(kind, Stage.STARTING)


def test_a_git_file_that_leads_nowhere_is_pending(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /none")
    expected = PendingProject(ProjectKind.GIT, Stage.NO_GIT_DIR)
    assert _state(tmp_path, ProjectKind.GIT) == expected


def test_the_progress_folders_are_those_that_git_writes(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git("worktree", "add", tmp_path / "tree", cwd=main)
    data = raw(main / ".git")
    assert progress_folders(raw(main), ProjectKind.GIT) == (
        raw(main), data, data + b"/objects/pack",
    )  # fmt: skip
    tree = progress_folders(raw(tmp_path / "tree"), ProjectKind.GIT)
    assert tree[1:] == (data + b"/worktrees/tree", data + b"/objects/pack")
    assert progress_folders(raw(tmp_path), ProjectKind.PROJECT) == ()
