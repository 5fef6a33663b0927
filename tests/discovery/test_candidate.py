"""The stage to wait for depends on how a candidate arrived and on the observed activity."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.discovery.candidate import Arrival, Candidate
from rootsd.disk.identity import identify
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.stages import CompleteProject, PendingProject, Stage
from support.repositories import fake_repository, git, raw

GIT, HG, PROJECT = ProjectKind.GIT, ProjectKind.HG, ProjectKind.PROJECT
PARTLY = IncompleteReason.NOT_CHECKED_OUT


def _candidate(
    path: Path, kind: ProjectKind = GIT, arrival: Arrival = Arrival.CREATED
) -> Candidate:
    return Candidate(raw(path), kind, arrival, quiet_since=0.0)


def _doubt(candidate: Candidate, state: CompleteProject | PendingProject) -> Stage | None:
    with OpenProject(candidate.path) as look:
        return candidate.stage_to_wait_for(state, look)


def _conclusion(candidate: Candidate, stage: Stage) -> IncompleteReason | None:
    with OpenProject(candidate.path) as look:
        return candidate.missing_part(stage, look)


def _is_whole(candidate: Candidate) -> bool:
    with OpenProject(candidate.path) as look:
        return candidate.is_copy_complete(look)


def test_a_moved_project_and_a_known_one_is_complete_if_it_looks_complete(tmp_path: Path) -> None:
    moved = _candidate(tmp_path, HG, Arrival.MOVED)
    known = _candidate(tmp_path, HG, Arrival.FOUND)
    assert _doubt(known, CompleteProject(HG)) is Stage.COPYING
    known.known = identify(raw(tmp_path))
    for candidate in (moved, known):
        assert _doubt(candidate, CompleteProject(HG)) is None
        assert _doubt(candidate, PendingProject(HG, Stage.OTHER)) is Stage.OTHER
    known.known = identify(raw(tmp_path.parent))
    assert _doubt(known, CompleteProject(HG)) is Stage.COPYING


def test_a_new_project_counts_as_a_copy_until_its_vcs_is_seen(tmp_path: Path) -> None:
    candidate = _candidate(fake_repository(tmp_path / "one"))
    assert _doubt(candidate, CompleteProject(GIT)) is Stage.COPYING
    candidate.saw_vcs_activity = True
    assert _doubt(candidate, CompleteProject(GIT)) is None


def test_other_tools_may_write_after_the_last_event(tmp_path: Path) -> None:
    candidate = _candidate(tmp_path, HG)
    assert _doubt(candidate, CompleteProject(HG)) is Stage.COPYING
    candidate.saw_vcs_activity = True
    assert _doubt(candidate, CompleteProject(HG)) is Stage.SETTLING
    assert _conclusion(candidate, Stage.SETTLING) is None


def test_project_files_and_worktrees_need_no_vcs_process(tmp_path: Path) -> None:
    assert _doubt(_candidate(tmp_path, PROJECT), CompleteProject(PROJECT)) is Stage.PROJECT_FILE
    tree = ProjectKind.GIT_WORKTREE
    assert _doubt(_candidate(tmp_path, tree), CompleteProject(tree)) is None


def test_a_copy_is_complete_if_it_has_all_files_that_it_names(tmp_path: Path) -> None:
    candidate = _candidate(fake_repository(tmp_path / "one"))
    assert not _is_whole(candidate)
    candidate.stage = Stage.COPYING
    assert _is_whole(candidate)
    assert _conclusion(candidate, Stage.COPYING) is None
    (tmp_path / "one" / ".git" / "index").write_bytes(b"DIRC")
    assert not _is_whole(candidate)
    assert _conclusion(candidate, Stage.COPYING) is IncompleteReason.INTERRUPTED


def test_a_candidate_stays_given_up_only_in_the_same_stage(tmp_path: Path) -> None:
    candidate = _candidate(tmp_path)
    candidate.stage = Stage.FETCHING
    assert not candidate.stays_given_up(Stage.FETCHING)
    candidate.given_up = IncompleteReason.INTERRUPTED
    assert candidate.stays_given_up(Stage.FETCHING)
    assert not candidate.stays_given_up(Stage.NEGOTIATING)
    candidate.stage = Stage.COPYING
    assert not candidate.stays_given_up(Stage.COPYING)


def test_files_without_an_index_are_incomplete_and_an_empty_folder_is_not(tmp_path: Path) -> None:
    candidate = _candidate(tmp_path)
    assert _conclusion(candidate, Stage.FILES_BEFORE_INDEX) is PARTLY
    assert _conclusion(candidate, Stage.NOT_CHECKED_OUT) is None
    assert _conclusion(candidate, Stage.UNBORN) is None
    assert _conclusion(candidate, Stage.LOCKED) is IncompleteReason.LOCKED


def test_an_index_without_its_branch_is_incomplete_if_a_file_is_missing(tmp_path: Path) -> None:
    repository = tmp_path / "one"
    git("init", repository)
    for name in ("file", "second", "third", "other"):
        (repository / name).touch()
        git("add", ".", cwd=repository)
    subprocess.run(["cp", "-r", repository, tmp_path / "copy"], check=True)
    copy = _candidate(tmp_path / "copy")
    assert _conclusion(copy, Stage.STAGED_UNBORN) is None
    for checkout in (repository, tmp_path / "copy"):
        (checkout / "file").unlink()
        (checkout / "second").unlink()
        (checkout / "third").unlink()
    assert _conclusion(copy, Stage.STAGED_UNBORN) is PARTLY
    assert _conclusion(_candidate(repository), Stage.STAGED_UNBORN) is None
