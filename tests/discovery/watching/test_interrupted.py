"""Interrupted clones and copies are incomplete, with the reason, until they continue."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.discovery.candidate import Arrival, CandidateResult
from rootsd.watch.events import FileEventKind
from support.candidates_harness import CandidatesHarness
from support.repositories import git, make_repository, raw

GIT = ProjectKind.GIT


def test_a_clone_waits_for_its_submodules(
    harness: CandidatesHarness, clone: Path, tmp_path: Path
) -> None:
    git("submodule", "add", tmp_path / "up", "libs", cwd=clone)
    git("commit", "-m", "submodule", cwd=clone)
    outside, one = tmp_path / "outside", tmp_path / "super"
    git("clone", "--recurse-submodules", clone, outside)
    (outside / "libs").rename(tmp_path / "kept")
    data = outside / ".git" / "modules" / "libs"
    (data / "HEAD").rename(data / "HEAD.lock")  # git is about to clone it
    outside.rename(one)
    data = one / ".git" / "modules" / "libs"
    harness.consider(one, GIT, Arrival.CREATED)
    harness.handle(one / ".git", "index.lock", FileEventKind.REMOVED)
    assert harness.wait(0.4) == []
    assert harness.wait(0.2) == [CandidateResult(raw(one), GIT, IncompleteReason.NOT_CHECKED_OUT)]
    (data / "HEAD.lock").rename(data / "HEAD")
    (tmp_path / "kept").rename(one / "libs")
    assert harness.handle(one / ".git", "index.lock", FileEventKind.REMOVED) == [
        CandidateResult(raw(one), GIT)
    ]


def test_a_clone_without_a_submodule_is_complete_once_git_has_ended(
    harness: CandidatesHarness, clone: Path, tmp_path: Path
) -> None:
    git("submodule", "add", tmp_path / "up", "libs", cwd=clone)
    git("commit", "-m", "submodule", cwd=clone)
    one = tmp_path / "super"
    git("clone", "--recurse-submodules=none", clone, one)
    assert not list((one / "libs").iterdir())
    harness.consider(one, GIT, Arrival.CREATED)
    harness.handle(one / ".git", "index.lock", FileEventKind.REMOVED)
    assert harness.wait(0.4) == []
    assert harness.wait(0.2) == [CandidateResult(raw(one), GIT)]


def test_a_copy_interrupted_before_its_index_is_incomplete(
    harness: CandidatesHarness, clone: Path
) -> None:
    (clone / ".git" / "index").unlink()
    harness.consider(clone, GIT, Arrival.CREATED)
    assert harness.wait(0.6) == [
        CandidateResult(raw(clone), GIT, IncompleteReason.NOT_CHECKED_OUT)
    ]


def test_a_clone_without_a_checkout_is_complete_and_a_part_of_it_is_not(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    make_repository(tmp_path / "up")
    for name in ("cloned", "finished", "stopped"):
        git("clone", "-n", tmp_path / "up", tmp_path / name)
    # As rsync does: the time of a folder comes last.
    for path in ("stopped/.git/HEAD", "finished/.git/HEAD", "finished"):
        os.utime(tmp_path / path, (0, 0))
    for name in ("cloned", "finished", "stopped"):
        harness.consider(tmp_path / name, GIT, Arrival.CREATED)
    assert harness.wait(0.3) == [
        CandidateResult(raw(tmp_path / "cloned"), GIT),
        CandidateResult(raw(tmp_path / "finished"), GIT),
        CandidateResult(raw(tmp_path / "stopped"), GIT, IncompleteReason.NOT_CHECKED_OUT),
    ]


def _part(clone: Path, to: Path) -> Path:
    """Return a copy without its last files, with new times."""
    subprocess.run(["cp", "-r", clone, to], check=True)
    for file in _last_files(to):
        file.unlink()
    return to


def _last_files(copy: Path) -> list[Path]:
    """Return the files that were copied last, in more than one folder."""
    files = sorted(copy.glob("d*/f*"), key=lambda file: (file.stat().st_ctime_ns, file))
    return files[-(len(files) // 2) :]


@pytest.mark.parametrize("arrival", Arrival)
def test_a_copy_without_some_files_is_incomplete_until_git_is_used_in_it(
    harness: CandidatesHarness, clone: Path, tmp_path: Path, arrival: Arrival
) -> None:
    copy = _part(clone, tmp_path / "copy")
    assert harness.consider(copy, GIT, arrival) is None
    assert harness.wait(2.9) == []
    assert harness.wait(0.2) == [CandidateResult(raw(copy), GIT, IncompleteReason.NOT_CHECKED_OUT)]
    git("reset", "-q", cwd=copy)
    assert harness.handle(copy / ".git", "index.lock", FileEventKind.REMOVED) == [
        CandidateResult(raw(copy), GIT)
    ]


@pytest.mark.parametrize("arrival", Arrival)
def test_a_checkout_with_deleted_files_is_complete(
    harness: CandidatesHarness, clone: Path, arrival: Arrival
) -> None:
    (clone / "d3" / "f3").unlink()
    harness.consider(clone, GIT, arrival)
    harness.wait(3.1)
    assert harness.consider(clone, GIT, Arrival.FOUND) == CandidateResult(raw(clone), GIT)


@pytest.mark.parametrize("arrival", Arrival)
def test_a_full_copy_of_a_checkout_with_deleted_files_is_complete(
    harness: CandidatesHarness, clone: Path, tmp_path: Path, arrival: Arrival
) -> None:
    (clone / "d3" / "f3").unlink()
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", clone, copy], check=True)
    settled = harness.consider(copy, GIT, arrival) or harness.wait(0.1)[0]
    assert settled == CandidateResult(raw(copy), GIT)


def test_a_copy_is_settled_when_all_its_files_exist(
    harness: CandidatesHarness, clone: Path, tmp_path: Path
) -> None:
    copy = _part(clone, tmp_path / "copy")
    assert harness.consider(copy, GIT, Arrival.CREATED) is None
    assert harness.wait(1.0) == []
    for file in clone.glob("d*/f*"):
        if not (copy / file.relative_to(clone)).exists():
            file.rename(copy / file.relative_to(clone))
    assert harness.wait(1.1) == [CandidateResult(raw(copy), GIT)]


def test_a_copied_lock_file_of_a_package_manager_is_no_sign_of_git(
    harness: CandidatesHarness, clone: Path, tmp_path: Path
) -> None:
    copy = _part(clone, tmp_path / "copy")
    harness.consider(copy, GIT, Arrival.CREATED)
    harness.handle(copy, "Cargo.lock", FileEventKind.ADDED)
    assert harness.wait(3.1) == [CandidateResult(raw(copy), GIT, IncompleteReason.NOT_CHECKED_OUT)]


def test_a_clone_that_fetched_nothing_is_complete_once_it_has_files(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    git("remote", "add", "origin", "file:///none", cwd=tmp_path / "one")
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    assert [end.incomplete for end in harness.wait(0.6)] == [IncompleteReason.INTERRUPTED]
    (tmp_path / "one" / "file").touch()
    harness.handle(tmp_path / "one", "file", FileEventKind.ADDED)
    assert harness.wait(1) == [CandidateResult(raw(tmp_path / "one"), GIT)]


def test_a_complete_copy_is_not_settled_while_its_process_runs(
    harness: CandidatesHarness, clone: Path
) -> None:
    harness.busy = harness.has_tool = True
    assert harness.consider(clone, GIT, Arrival.CREATED) is None
    assert harness.wait(60) == []
    harness.busy = False
    assert harness.wait(2) == [CandidateResult(raw(clone), GIT)]


def test_a_checkout_whose_git_died_is_given_up_and_still_watched(
    harness: CandidatesHarness, clone: Path
) -> None:
    (clone / ".git" / "index").rename(clone / ".git" / "index.lock")
    harness.consider(clone, GIT, Arrival.CREATED)
    assert harness.wait(2.9) == []
    assert harness.wait(0.2) == [
        CandidateResult(raw(clone), GIT, IncompleteReason.NOT_CHECKED_OUT)
    ]
    assert harness.candidates.next_due() is None
    assert len(harness.candidates) == 0
    (clone / ".git" / "index.lock").rename(clone / ".git" / "index")
    assert harness.handle(clone / ".git", "index", FileEventKind.ADDED, moved=True) == [
        CandidateResult(raw(clone), GIT)
    ]


def test_a_fetch_that_was_killed_is_interrupted(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    pack = tmp_path / "one" / ".git" / "objects" / "pack"
    (pack / "tmp_pack_x").touch()
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    assert harness.wait(0.9) == []
    harness.handle(pack, "tmp_pack_x", FileEventKind.MODIFIED)
    assert harness.wait(0.9) == []
    expected = CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.INTERRUPTED)
    assert harness.wait(0.2) == [expected]
