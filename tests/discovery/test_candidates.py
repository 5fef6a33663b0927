"""Whether a project is complete: by its state, by observed activity, by time, and by processes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from rootsd.core.model import IncompleteReason, ProjectKind
from rootsd.discovery.candidates import Arrival, CandidateResult, Candidates
from rootsd.watch.events import FileEventKind, WatchPurpose
from support.candidates_harness import CandidatesHarness
from support.repositories import fake_repository, git, raw

GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


@pytest.mark.parametrize("arrival", [Arrival.FOUND, Arrival.MOVED])
def test_a_complete_project_found_or_moved_here_needs_no_watch(
    making: CandidatesHarness, clone: Path, arrival: Arrival
) -> None:
    assert making.consider(clone, GIT, arrival) == CandidateResult(raw(clone), GIT)
    assert making.watcher.count() == 0
    assert making.candidates.next_due() is None


def test_a_project_moved_here_with_a_lock_is_watched(
    making: CandidatesHarness, clone: Path
) -> None:
    (clone / ".git" / "index.lock").touch()
    assert making.consider(clone, GIT, Arrival.MOVED) is None
    assert making.watcher.count() > 0


def test_a_clone_is_settled_when_git_was_seen_and_the_index_is_there(
    making: CandidatesHarness, clone: Path
) -> None:
    index, lock = clone / ".git" / "index", clone / ".git" / "index.lock"
    index.rename(lock)
    assert making.consider(clone, GIT, Arrival.MADE) is None
    assert making.happen(clone / ".git", "index.lock", FileEventKind.ADDED) == []
    lock.rename(index)
    assert making.happen(clone / ".git", "index", FileEventKind.ADDED, moved=True) == [
        CandidateResult(raw(clone), GIT)
    ]
    assert making.watches() == 0
    assert making.candidates.next_due() is None  # its former watches no longer wake anything


def test_a_clone_on_an_unresponsive_file_system_is_checked_later(
    making: CandidatesHarness, clone: Path
) -> None:
    (clone / ".git" / "index").rename(clone / ".git" / "index.lock")
    assert making.consider(clone, GIT, Arrival.MADE) is None
    making.answers = False
    (clone / ".git" / "index.lock").rename(clone / ".git" / "index")
    assert making.happen(clone / ".git", "index", FileEventKind.ADDED, moved=True) == []
    assert making.wait(60) == []
    making.answers = True
    assert making.wait(60) == [CandidateResult(raw(clone), GIT)]


def test_a_stopped_clone_is_not_given_up(making: CandidatesHarness, clone: Path) -> None:
    (clone / ".git" / "index").rename(clone / ".git" / "index.lock")
    making.busy = True
    assert making.consider(clone, GIT, Arrival.MADE) is None
    assert making.wait(3600) == []
    assert len(making.candidates) == 1


def test_a_scan_also_gives_up_a_broken_repository(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    assert making.consider(tmp_path / "one", GIT, Arrival.FOUND) is None
    expected = CandidateResult(raw(tmp_path / "one"), GIT, IncompleteReason.NO_HEAD)
    assert making.wait(5.1) == [expected]
    assert making.wait(3600) == []


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock ahead, so that everything created now is a day old. No change time can be set
    back.
    """
    monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9 + 86_400)


@pytest.mark.usefixtures("tomorrow")
def test_an_old_quiet_project_is_settled_at_once_by_a_scan(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    assert making.consider(tmp_path / "one", GIT, Arrival.FOUND) == CandidateResult(
        raw(tmp_path / "one"), GIT
    )
    (tmp_path / "two" / ".git").mkdir(parents=True)
    assert making.consider(tmp_path / "two", GIT, Arrival.FOUND) is None
    assert making.candidates.due() == [
        CandidateResult(raw(tmp_path / "two"), GIT, IncompleteReason.NO_HEAD)
    ]
    assert making.candidates.next_due() is None


@pytest.mark.usefixtures("tomorrow")
def test_an_old_project_in_use_is_watched(making: CandidatesHarness, tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    git("remote", "add", "origin", "https://example.org/slow", cwd=tmp_path / "one")
    (tmp_path / "one" / "file").touch()
    making.busy = True
    assert making.consider(tmp_path / "one", GIT, Arrival.FOUND) is None
    making.busy = False
    assert making.wait(0.6) == [CandidateResult(raw(tmp_path / "one"), GIT)]


@pytest.mark.usefixtures("tomorrow")
def test_a_project_created_while_watching_is_never_old(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    assert making.consider(tmp_path / "one", GIT, Arrival.MADE) is None


def test_git_init_is_settled_after_a_short_quiet_period(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    assert making.consider(tmp_path / "one", GIT, Arrival.MADE) is None
    assert making.wait(0.03) == [CandidateResult(raw(tmp_path / "one"), GIT)]


def test_a_process_that_keeps_writing_delays_a_new_repository_only_for_a_while(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    making.busy = True
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    assert making.wait(9) == []
    assert making.wait(3) == [CandidateResult(raw(tmp_path / "one"), GIT)]


def test_a_moved_project_is_complete(making: CandidatesHarness, clone: Path) -> None:
    (clone / "d3" / "f3").unlink()
    assert making.consider(clone, GIT, Arrival.MOVED) == CandidateResult(raw(clone), GIT)


def test_a_worktree_is_settled_at_once_with_its_main_checkout(
    making: CandidatesHarness, clone: Path, tmp_path: Path
) -> None:
    git("worktree", "add", tmp_path / "tree", cwd=clone)
    tree = raw(tmp_path / "tree")
    expected = CandidateResult(tree, ProjectKind.GIT_WORKTREE, None, raw(clone))
    assert making.consider(tmp_path / "tree", GIT, Arrival.MADE) == expected


def test_a_project_file_needs_a_quiet_folder(making: CandidatesHarness, tmp_path: Path) -> None:
    assert making.consider(tmp_path, PROJECT, Arrival.MADE) is None
    assert making.wait(0.2) == []
    making.candidates.restart_quiet_time(raw(tmp_path))
    assert making.wait(0.2) == []
    assert making.wait(0.1) == [CandidateResult(raw(tmp_path), PROJECT)]
    assert making.consider(tmp_path, PROJECT, Arrival.FOUND) == CandidateResult(
        raw(tmp_path), PROJECT
    )


def test_a_repository_removed_while_it_is_created_is_not_reported(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    shutil.rmtree(tmp_path / "one" / ".git")
    assert making.happen(tmp_path / "one" / ".git", "", FileEventKind.SELF) == [
        CandidateResult(raw(tmp_path / "one"), None)
    ]
    assert making.watches() == 0


def test_a_dropped_candidate_is_not_checked_again(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    assert making.candidates.drop(raw(tmp_path / "one"))
    assert not making.candidates.drop(raw(tmp_path / "one"))
    assert making.wait(10) == []
    assert making.watches() == 0


def test_an_old_repository_of_another_kind_is_settled_by_a_scan(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    (tmp_path / ".pijul" / "pristine").mkdir(parents=True)
    (tmp_path / ".pijul" / "pristine" / "db").touch()
    pijul = ProjectKind.PIJUL
    assert making.consider(tmp_path, pijul, Arrival.FOUND) is None
    assert making.wait(3.1) == [CandidateResult(raw(tmp_path), pijul)]


@pytest.mark.parametrize("arrival", [Arrival.FOUND, Arrival.MADE])
def test_a_copy_of_another_vcs_is_complete_once_nothing_in_it_grows(
    making: CandidatesHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrival: Arrival
) -> None:
    data, deep = tmp_path / ".hg", tmp_path / "src" / "deep"
    (data / "store").mkdir(parents=True)
    (data / "requires").touch()
    (data / "dirstate").write_bytes(b"\1" * 40)
    deep.mkdir(parents=True)
    now = time.time()
    for age in (0, 2.9):  # no event reports a change this deep
        monkeypatch.setattr(time, "time", lambda: deep.stat().st_ctime + age)  # noqa: B023
        assert making.consider(tmp_path, ProjectKind.HG, arrival) is None
        assert making.wait(60) == []
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert making.wait(60) == [CandidateResult(raw(tmp_path), ProjectKind.HG)]


def test_a_repository_in_use_is_settled_by_a_scan(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    fake_repository(tmp_path / "one")
    (tmp_path / "one" / ".git" / "index.lock").touch()
    assert making.consider(tmp_path / "one", GIT, Arrival.FOUND) is not None


def test_a_long_wait_checks_rarely(making: CandidatesHarness, tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    keep = tmp_path / "one" / ".git" / "objects" / "pack" / "pack-1.keep"
    keep.write_text(f"fetch-pack {os.getpid()} on {os.uname().nodename}")
    making.busy = True
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    making.wait(600)
    assert 0 < len(making.looks) <= 600


def test_a_watch_that_ended_is_set_again(making: CandidatesHarness, clone: Path) -> None:
    """A quick unmount and mount ends each watch, and the project is there as before."""
    index, lock = clone / ".git" / "index", clone / ".git" / "index.lock"
    index.rename(lock)
    making.consider(clone, GIT, Arrival.MADE)
    before = making.watcher.folders(WatchPurpose.PROGRESS)
    making.watcher.watched.clear()
    for folder in before:
        making.happen(Path(os.fsdecode(folder)), "", FileEventKind.SELF)
    assert making.watcher.folders(WatchPurpose.PROGRESS) == before
    lock.rename(index)
    making.happen(clone / ".git", "index.lock", FileEventKind.REMOVED)
    assert making.watches() == 0


def test_a_watch_needed_again_before_its_removal_is_kept(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    git("init", tmp_path)
    making.consider(tmp_path, GIT, Arrival.MADE)
    before = making.watcher.folders(WatchPurpose.PROGRESS)
    assert making.candidates.drop(raw(tmp_path))
    making.consider(tmp_path, GIT, Arrival.MADE)
    making.candidates.tidy()
    assert making.watcher.folders(WatchPurpose.PROGRESS) == before


def test_many_unneeded_watches_are_removed_at_once(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    most = 0
    for number in range(100):
        one = tmp_path / str(number)
        (one / ".git" / "objects" / "pack").mkdir(parents=True)
        making.consider(one, GIT, Arrival.MADE)
        making.candidates.drop(raw(one))
        most = max(most, making.watcher.count())
    assert 0 < most < 100


@pytest.mark.usefixtures("tomorrow")
def test_one_list_of_processes_serves_all_candidates(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
        assert making.consider(folder, GIT, Arrival.FOUND) is None
    ends = [CandidateResult(raw(folder), GIT, IncompleteReason.NO_HEAD) for folder in folders]
    assert making.candidates.due() == ends
    assert making.looks == [{raw(folder) for folder in folders}]


class Finisher:
    """A process that ends while it is looked for.

    It existed when the files were read, and writes on before the list of processes shows its end.
    """

    def __init__(self, making: CandidatesHarness, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work
        making.candidates = Candidates(making.watcher, self, making.clock)

    def __call__(self, _folders: Collection[bytes]) -> frozenset[bytes]:
        if self._work is not None:
            self._work()
            self._work = None
        return frozenset()


def test_the_last_writes_of_an_ended_process_are_seen(
    making: CandidatesHarness, clone: Path
) -> None:
    index = clone / ".git" / "index"
    index.rename(clone / "kept")
    # It starts its checkout, and is killed in the middle.
    Finisher(making, (clone / ".git" / "index.lock").touch)
    making.consider(clone, GIT, Arrival.MADE)
    assert making.wait(3) == []
    assert making.wait(2) == [CandidateResult(raw(clone), GIT, IncompleteReason.NOT_CHECKED_OUT)]


def test_events_before_the_check_restart_the_quiet_period(
    making: CandidatesHarness, tmp_path: Path
) -> None:
    making.consider(tmp_path, PROJECT, Arrival.MADE)
    assert making.wait(0.2) == []
    making.clock.now += 0.1
    making.consider(tmp_path, PROJECT, Arrival.FOUND)
    making.candidates.restart_quiet_time(raw(tmp_path))
    assert making.candidates.due() == []
    assert making.looks == []
    assert making.wait(0.3) == [CandidateResult(raw(tmp_path), PROJECT)]
