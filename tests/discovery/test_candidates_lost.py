"""Candidates whose events were lost or never came."""

from __future__ import annotations

from pathlib import Path

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.discovery.candidate import Arrival, CandidateResult
from rootsd.watch.events import WatchPurpose
from support.candidates_harness import CandidatesHarness
from support.repositories import fake_repository, git, raw

GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


def test_a_sweep_settles_a_given_up_candidate_that_continued_unnoticed(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    harness.watcher.budget = 0
    (tmp_path / "one" / ".git").mkdir(parents=True)
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    assert harness.wait(5.1) == [
        CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    ]
    assert harness.candidates.sweep() + harness.wait(60) == []
    git("init", tmp_path / "one")
    assert harness.wait(60) == []
    assert harness.candidates.sweep() + harness.wait(60) == [
        CandidateResult(raw(tmp_path / "one"), GIT)
    ]


def test_after_lost_events_a_given_up_candidate_is_checked_and_watched_again(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    git_folder = tmp_path / "one" / ".git"
    git_folder.mkdir(parents=True)
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    assert harness.wait(5.1) == [
        CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    ]
    # Discovery does not know which watches have ended, so it must set all of them again.
    harness.watcher.watched.clear()
    assert harness.candidates.handle_overflow() == []
    assert harness.candidates.catch_up(1) == []
    assert not harness.candidates.has_deferred_work
    assert harness.candidates.next_due() is None  # it is in the stage in which it was given up
    assert raw(git_folder) in harness.watcher.folders(WatchPurpose.PROGRESS)
    git("init", tmp_path / "one")
    harness.candidates.handle_overflow()
    assert harness.candidates.catch_up(1) + harness.wait(60) == [
        CandidateResult(raw(tmp_path / "one"), GIT)
    ]


def test_after_lost_events_given_up_candidates_are_checked_last_in_small_groups(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    for name in ("one", "two", "gone"):
        (tmp_path / name / ".git").mkdir(parents=True)
        harness.consider(tmp_path / name, GIT, Arrival.CREATED)
    harness.wait(5.1)
    begun = fake_repository(tmp_path / "begun")
    harness.consider(begun, GIT, Arrival.CREATED)
    for name in ("one", "two"):
        git("init", tmp_path / name)
    assert harness.candidates.handle_overflow() + harness.candidates.due() == [
        CandidateResult(raw(begun), GIT)
    ]
    harness.candidates.drop(raw(tmp_path / "gone"))
    settled = []
    for _ in range(3):
        assert harness.candidates.has_deferred_work
        settled.append(harness.candidates.catch_up(1) + harness.wait(60))
    assert not harness.candidates.has_deferred_work
    assert settled == [[CandidateResult(raw(tmp_path / name), GIT)] for name in ("one", "two")] + [
        []
    ]


def test_an_already_complete_copy_is_watched_only_while_a_process_uses_it(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    one, two = (fake_repository(tmp_path / name) for name in ("one", "two"))
    assert harness.consider(one, GIT, Arrival.CREATED) is None
    assert harness.watches() == 0
    assert harness.candidates.due() == [CandidateResult(raw(one), GIT)]
    harness.busy = True
    assert harness.consider(two, GIT, Arrival.CREATED) is None
    assert harness.candidates.due() == []
    assert raw(two / ".git") in harness.watcher.folders(WatchPurpose.PROGRESS)
    harness.busy = False
    assert harness.wait(1) == [CandidateResult(raw(two), GIT)]
