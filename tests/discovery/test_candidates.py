"""Candidates are settled by their state, by observed activity, by time, and by processes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.discovery.candidate import Arrival, CandidateResult
from rootsd.discovery.candidates import Candidates
from rootsd.watch.events import FileEventKind, WatchPurpose
from support.candidates_harness import CandidatesHarness
from support.repositories import fake_repository, git, raw

GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


@pytest.mark.parametrize("arrival", [Arrival.FOUND, Arrival.MOVED])
def test_a_complete_project_found_or_moved_here_needs_no_watch(
    harness: CandidatesHarness, clone: Path, arrival: Arrival
) -> None:
    assert harness.consider(clone, GIT, arrival) == CandidateResult(raw(clone), GIT)
    assert harness.watcher.count() == 0
    assert harness.candidates.next_due() is None


def test_a_project_moved_here_with_a_lock_is_watched(
    harness: CandidatesHarness, clone: Path
) -> None:
    (clone / ".git" / "index.lock").touch()
    assert harness.consider(clone, GIT, Arrival.MOVED) is None
    assert harness.watcher.count() > 0


def test_a_clone_is_settled_when_git_was_seen_and_the_index_is_there(
    harness: CandidatesHarness, clone: Path
) -> None:
    index, lock = clone / ".git" / "index", clone / ".git" / "index.lock"
    index.rename(lock)
    assert harness.consider(clone, GIT, Arrival.CREATED) is None
    assert harness.handle(clone / ".git", "index.lock", FileEventKind.ADDED) == []
    lock.rename(index)
    assert harness.handle(clone / ".git", "index", FileEventKind.ADDED, moved=True) == [
        CandidateResult(raw(clone), GIT)
    ]
    assert harness.watches() == 0
    assert harness.candidates.next_due() is None  # its former watches no longer wake anything


def test_a_clone_on_an_unresponsive_file_system_is_checked_later(
    harness: CandidatesHarness, clone: Path
) -> None:
    (clone / ".git" / "index").rename(clone / ".git" / "index.lock")
    assert harness.consider(clone, GIT, Arrival.CREATED) is None
    harness.answers = False
    (clone / ".git" / "index.lock").rename(clone / ".git" / "index")
    assert harness.handle(clone / ".git", "index", FileEventKind.ADDED, moved=True) == []
    assert harness.wait(60) == []
    harness.answers = True
    assert harness.wait(60) == [CandidateResult(raw(clone), GIT)]


def test_a_stopped_clone_is_not_given_up(harness: CandidatesHarness, clone: Path) -> None:
    (clone / ".git" / "index").rename(clone / ".git" / "index.lock")
    harness.busy = True
    assert harness.consider(clone, GIT, Arrival.CREATED) is None
    assert harness.wait(3600) == []
    assert len(harness.candidates) == 1


def test_a_scan_also_gives_up_a_broken_repository(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    assert harness.consider(tmp_path / "one", GIT, Arrival.FOUND) is None
    expected = CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    assert harness.wait(5.1) == [expected]
    assert harness.wait(3600) == []


@pytest.mark.parametrize("arrival", [Arrival.FOUND, Arrival.CREATED])
def test_git_init_is_settled_after_a_short_quiet_period(
    harness: CandidatesHarness, tmp_path: Path, arrival: Arrival
) -> None:
    git("init", tmp_path / "one")
    assert harness.consider(tmp_path / "one", GIT, arrival) is None
    assert harness.wait(0.03) == [CandidateResult(raw(tmp_path / "one"), GIT)]


@pytest.mark.parametrize("clock", [-86_400, 86_400])
def test_a_clock_that_somebody_sets_makes_no_repository_old(
    harness: CandidatesHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: float
) -> None:
    now = time.time()
    (tmp_path / "one" / ".git").mkdir(parents=True)
    monkeypatch.setattr(time, "time", lambda: now + clock)
    assert harness.consider(tmp_path / "one", GIT, Arrival.FOUND) is None
    assert harness.wait(4.5) == []
    expected = CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    assert harness.wait(0.6) == [expected]


def test_a_found_project_in_use_is_watched(harness: CandidatesHarness, tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    git("remote", "add", "origin", "https://example.org/slow", cwd=tmp_path / "one")
    (tmp_path / "one" / "file").touch()
    harness.busy = True
    assert harness.consider(tmp_path / "one", GIT, Arrival.FOUND) is None
    harness.busy = False
    assert harness.wait(0.6) == [CandidateResult(raw(tmp_path / "one"), GIT)]


def test_a_process_that_keeps_writing_delays_a_new_repository_only_for_a_while(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    harness.busy = True
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    assert harness.wait(9) == []
    assert harness.wait(3) == [CandidateResult(raw(tmp_path / "one"), GIT)]


def test_a_worktree_is_settled_at_once_with_its_main_checkout(
    harness: CandidatesHarness, clone: Path, tmp_path: Path
) -> None:
    git("worktree", "add", tmp_path / "tree", cwd=clone)
    tree = raw(tmp_path / "tree")
    expected = CandidateResult(tree, ProjectKind.GIT_WORKTREE, None, raw(clone))
    assert harness.consider(tmp_path / "tree", GIT, Arrival.CREATED) == expected


def test_a_project_file_needs_a_quiet_folder(harness: CandidatesHarness, tmp_path: Path) -> None:
    assert harness.consider(tmp_path, PROJECT, Arrival.CREATED) is None
    assert harness.wait(0.2) == []
    harness.candidates.restart_quiet_time(raw(tmp_path))
    assert harness.wait(0.2) == []
    assert harness.wait(0.1) == [CandidateResult(raw(tmp_path), PROJECT)]
    assert harness.consider(tmp_path, PROJECT, Arrival.FOUND) == CandidateResult(
        raw(tmp_path), PROJECT
    )


def test_a_repository_removed_while_it_is_created_is_not_reported(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    shutil.rmtree(tmp_path / "one" / ".git")
    assert harness.handle(tmp_path / "one" / ".git", "", FileEventKind.SELF) == [
        CandidateResult(raw(tmp_path / "one"), None)
    ]
    assert harness.watches() == 0


def test_a_dropped_candidate_is_not_checked_again(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    assert harness.candidates.drop(raw(tmp_path / "one"))
    assert not harness.candidates.drop(raw(tmp_path / "one"))
    assert harness.wait(10) == []
    assert harness.watches() == 0


def test_an_old_repository_of_another_kind_is_settled_by_a_scan(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / ".pijul" / "pristine").mkdir(parents=True)
    (tmp_path / ".pijul" / "pristine" / "db").touch()
    pijul = ProjectKind.PIJUL
    assert harness.consider(tmp_path, pijul, Arrival.FOUND) is None
    assert harness.wait(3.1) == [CandidateResult(raw(tmp_path), pijul)]


def make_hg(path: Path) -> Path:
    """Create what discovery takes for a complete Mercurial checkout. Return a folder in it."""
    (path / ".hg" / "store").mkdir(parents=True)
    (path / ".hg" / "requires").touch()
    (path / ".hg" / "dirstate").write_bytes(b"\1" * 40)
    deep = path / "src" / "deep"
    deep.mkdir(parents=True)
    return deep


@pytest.mark.parametrize("arrival", [Arrival.FOUND, Arrival.CREATED])
@pytest.mark.parametrize("clock", [-86_400, 0, 86_400, 6e9, -6e9])
def test_a_copy_of_another_vcs_is_complete_once_nothing_is_new_in_it(
    harness: CandidatesHarness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arrival: Arrival,
    clock: float,
) -> None:
    """It does not matter how far the clock of the disk is ahead or behind."""
    deep, now = make_hg(tmp_path), time.time()
    monkeypatch.setattr(time, "time", lambda: now + clock)
    monkeypatch.setattr(time, "time_ns", lambda: int((now + clock) * 1e9))
    assert harness.consider(tmp_path, ProjectKind.HG, arrival) is None
    for number in range(3):  # no event reports a change this deep
        (deep / f"{number}").touch()
        assert harness.wait(3.2) == []
    assert harness.wait(3.2) == [CandidateResult(raw(tmp_path), ProjectKind.HG)]


def test_writes_do_not_delay_a_checkout(harness: CandidatesHarness, tmp_path: Path) -> None:
    deep = make_hg(tmp_path)
    (deep / "log").touch()
    harness.consider(tmp_path, ProjectKind.HG, Arrival.CREATED)
    settled = []
    for number in range(33):
        (deep / "log").write_text(f"{number}")
        os.utime(deep / "log", (7e9, 7e9))
        settled += harness.handle(tmp_path / ".hg", "branch", FileEventKind.MODIFIED)
        settled += harness.wait(0.1)
    assert settled == [CandidateResult(raw(tmp_path), ProjectKind.HG)]


def test_a_program_that_creates_files_all_the_time_delays_a_checkout_for_a_while(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    deep = make_hg(tmp_path)
    harness.busy = True
    harness.consider(tmp_path, ProjectKind.HG, Arrival.CREATED)

    def seconds() -> float:
        start = harness.clock.now
        for number in range(20_000):
            (deep / f"{number}").touch()
            settled = harness.handle(tmp_path / ".hg", "tmp", FileEventKind.ADDED)
            if settled + harness.wait(0.01):
                return harness.clock.now - start
        return float("inf")

    assert 29 < seconds() < 32
    assert len(harness.process_lists) < 100


def test_a_tool_delays_a_checkout_as_long_as_it_creates_something(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    deep = make_hg(tmp_path)
    harness.busy = harness.has_tool = True
    harness.consider(tmp_path, ProjectKind.HG, Arrival.CREATED)
    for number in range(5):
        (deep / f"{number}").touch()
        assert harness.wait(599) == []
    assert harness.wait(1_300) == [CandidateResult(raw(tmp_path), ProjectKind.HG)]


def test_a_tool_that_ends_delays_a_checkout_no_longer(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    make_hg(tmp_path)
    harness.busy = harness.has_tool = True
    harness.consider(tmp_path, ProjectKind.HG, Arrival.CREATED)
    assert harness.wait(60) == []
    harness.busy = harness.has_tool = False
    assert harness.wait(2) == [CandidateResult(raw(tmp_path), ProjectKind.HG)]


def test_a_program_does_not_end_the_wait_for_what_is_missing(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    make_hg(tmp_path)
    (tmp_path / ".hg" / "dirstate").unlink()
    (tmp_path / ".hg" / "wlock").touch()
    harness.busy = True
    harness.consider(tmp_path, ProjectKind.HG, Arrival.CREATED)
    assert harness.wait(3_600) == []


def test_a_repository_in_use_is_settled_by_a_scan(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    fake_repository(tmp_path / "one")
    (tmp_path / "one" / ".git" / "index.lock").touch()
    assert harness.consider(tmp_path / "one", GIT, Arrival.FOUND) is not None


def test_a_long_wait_checks_rarely(harness: CandidatesHarness, tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    keep = tmp_path / "one" / ".git" / "objects" / "pack" / "pack-1.keep"
    keep.write_text(f"fetch-pack {os.getpid()} on {os.uname().nodename}")
    harness.busy = True
    harness.consider(tmp_path / "one", GIT, Arrival.CREATED)
    harness.wait(600)
    assert 0 < len(harness.process_lists) <= 600


def test_a_watch_that_ended_is_set_again(harness: CandidatesHarness, clone: Path) -> None:
    """A quick unmount and mount ends each watch, and the project is there as before."""
    index, lock = clone / ".git" / "index", clone / ".git" / "index.lock"
    index.rename(lock)
    harness.consider(clone, GIT, Arrival.CREATED)
    before = harness.watcher.folders(WatchPurpose.PROGRESS)
    harness.watcher.watched.clear()
    for folder in before:
        harness.handle(Path(os.fsdecode(folder)), "", FileEventKind.SELF)
    assert harness.watcher.folders(WatchPurpose.PROGRESS) == before
    lock.rename(index)
    harness.handle(clone / ".git", "index.lock", FileEventKind.REMOVED)
    assert harness.watches() == 0


def test_a_watch_needed_again_before_its_removal_is_kept(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path)
    harness.consider(tmp_path, GIT, Arrival.CREATED)
    before = harness.watcher.folders(WatchPurpose.PROGRESS)
    assert harness.candidates.drop(raw(tmp_path))
    harness.consider(tmp_path, GIT, Arrival.CREATED)
    harness.candidates.remove_unused_watches()
    assert harness.watcher.folders(WatchPurpose.PROGRESS) == before


def test_many_unneeded_watches_are_removed_at_once(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    most = 0
    for number in range(100):
        one = tmp_path / str(number)
        (one / ".git" / "objects" / "pack").mkdir(parents=True)
        harness.consider(one, GIT, Arrival.CREATED)
        harness.candidates.drop(raw(one))
        most = max(most, harness.watcher.count())
    assert 0 < most < 100


def test_one_list_of_processes_serves_all_candidates(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
        assert harness.consider(folder, GIT, Arrival.FOUND) is None
    ends = [CandidateResult(raw(folder), GIT, IncompleteReason.NO_HEAD) for folder in folders]
    assert harness.wait(5.1) == ends
    assert harness.process_lists == [{raw(folder) for folder in folders}]


class EndingProcess:
    """A process that ends between the first read of the files and the list of processes.

    Before it ends, it does `work`, which changes the files.
    """

    def __init__(self, harness: CandidatesHarness, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work
        harness.candidates = Candidates(
            harness.watcher, self, harness.clock, lambda _folder: True, harness.find_tools
        )

    def __call__(self, _folders: Collection[bytes]) -> frozenset[bytes]:
        if self._work is not None:
            self._work()
            self._work = None
        return frozenset()


def test_the_last_writes_of_an_ended_process_are_seen(
    harness: CandidatesHarness, clone: Path
) -> None:
    index = clone / ".git" / "index"
    index.rename(clone / "kept")
    # The process starts its checkout, and someone kills it in the middle.
    EndingProcess(harness, (clone / ".git" / "index.lock").touch)
    harness.consider(clone, GIT, Arrival.CREATED)
    assert harness.wait(3) == []
    assert harness.wait(2) == [CandidateResult(raw(clone), GIT, IncompleteReason.NOT_CHECKED_OUT)]


def test_events_before_the_check_restart_the_quiet_period(
    harness: CandidatesHarness, tmp_path: Path
) -> None:
    harness.consider(tmp_path, PROJECT, Arrival.CREATED)
    assert harness.wait(0.2) == []
    harness.clock.now += 0.1
    harness.consider(tmp_path, PROJECT, Arrival.FOUND)
    harness.candidates.restart_quiet_time(raw(tmp_path))
    assert harness.candidates.due() == []
    assert harness.process_lists == []
    assert harness.wait(0.3) == [CandidateResult(raw(tmp_path), PROJECT)]
