"""Candidates whose events were lost or never came."""

from __future__ import annotations

from pathlib import Path

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.discovery.candidates import Arrival, CandidateResult
from rootsd.watch.events import WatchPurpose
from support.candidates_harness import CandidatesHarness
from support.repositories import fake_repository, git, raw

GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


def test_a_sweep_settles_a_given_up_candidate_that_continued_unnoticed(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    making.watcher.budget = 0
    (tmp_path / "one" / ".git").mkdir(parents=True)
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    assert making.wait(5.1) == [
        CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    ]
    assert making.candidates.sweep() + making.wait(60) == []
    git("init", tmp_path / "one")
    assert making.wait(60) == []
    assert making.candidates.sweep() + making.wait(60) == [
        CandidateResult(raw(tmp_path / "one"), GIT)
    ]


def test_after_lost_events_a_given_up_candidate_is_checked_and_watched_again(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    git_folder = tmp_path / "one" / ".git"
    git_folder.mkdir(parents=True)
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    assert making.wait(5.1) == [
        CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    ]
    # As if it were another folder now: discovery does not know which watches have ended.
    making.watcher.watched.clear()
    assert making.candidates.handle_overflow() == []
    assert making.candidates.catch_up(1) == []
    assert not making.candidates.is_behind
    assert making.candidates.next_due() is None  # it is in the stage in which it was given up
    assert raw(git_folder) in making.watcher.folders(WatchPurpose.PROGRESS)
    git("init", tmp_path / "one")
    making.candidates.handle_overflow()
    assert making.candidates.catch_up(1) + making.wait(60) == [
        CandidateResult(raw(tmp_path / "one"), GIT)
    ]


def test_after_lost_events_given_up_candidates_are_checked_last_in_small_groups(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    for name in ("one", "two", "gone"):
        (tmp_path / name / ".git").mkdir(parents=True)
        making.consider(tmp_path / name, GIT, Arrival.MADE)
    making.wait(5.1)
    begun = fake_repository(tmp_path / "begun")
    making.consider(begun, GIT, Arrival.MADE)
    for name in ("one", "two"):
        git("init", tmp_path / name)
    assert making.candidates.handle_overflow() + making.candidates.due() == [
        CandidateResult(raw(begun), GIT)
    ]
    making.candidates.drop(raw(tmp_path / "gone"))
    settled = []
    for _ in range(3):
        assert making.candidates.is_behind
        settled.append(making.candidates.catch_up(1) + making.wait(60))
    assert not making.candidates.is_behind
    assert settled == [[CandidateResult(raw(tmp_path / name), GIT)] for name in ("one", "two")] + [
        []
    ]


def test_an_already_complete_copy_is_watched_only_while_a_process_uses_it(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    one, two = (fake_repository(tmp_path / name) for name in ("one", "two"))
    assert making.consider(one, GIT, Arrival.MADE) is None
    assert making.watches() == 0
    assert making.candidates.due() == [CandidateResult(raw(one), GIT)]
    making.busy = True
    assert making.consider(two, GIT, Arrival.MADE) is None
    assert making.candidates.due() == []
    assert raw(two / ".git") in making.watcher.folders(WatchPurpose.PROGRESS)
    making.busy = False
    assert making.wait(1) == [CandidateResult(raw(two), GIT)]
