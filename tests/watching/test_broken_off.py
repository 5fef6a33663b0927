"""Clones and copies that were broken off: incomplete, with the reason, until they go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.app.discovery.candidate import Arrival, Settled
from rootsd.core.model import Incomplete, ProjectKind
from rootsd.host.watch.events import Change
from support.making import Making
from support.repos import git, make_repository, raw

GIT = ProjectKind.GIT


@pytest.fixture
def making() -> Making:
    return Making()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    make_repository(tmp_path / "up", files=5)
    git("clone", f"file://{tmp_path / 'up'}", tmp_path / "one")
    return tmp_path / "one"


def test_a_clone_waits_for_its_submodules(making: Making, clone: Path, tmp_path: Path) -> None:
    git("submodule", "add", tmp_path / "up", "libs", cwd=clone)
    git("commit", "-m", "submodule", cwd=clone)
    outside, one = tmp_path / "outside", tmp_path / "super"
    git("clone", "--recurse-submodules", clone, outside)
    (outside / "libs").rename(tmp_path / "kept")
    outside.rename(one)
    making.consider(one, GIT, Arrival.MADE)
    making.happen(one / ".git", "index.lock", Change.LEFT)
    assert making.wait(0.4) == []
    assert making.wait(0.2) == [Settled(raw(one), GIT, Incomplete.NOT_CHECKED_OUT)]
    (tmp_path / "kept").rename(one / "libs")
    assert making.happen(one / ".git", "index.lock", Change.LEFT) == [Settled(raw(one), GIT)]


def test_a_copy_broken_off_before_its_index_is_incomplete(making: Making, clone: Path) -> None:
    (clone / ".git" / "index").unlink()
    making.consider(clone, GIT, Arrival.MADE)
    assert making.wait(0.6) == [Settled(raw(clone), GIT, Incomplete.NOT_CHECKED_OUT)]


def test_a_clone_without_a_checkout_is_whole_and_a_copy_of_its_part_is_not(
    making: Making, tmp_path: Path
) -> None:
    make_repository(tmp_path / "up")
    for name in ("cloned", "copied"):
        git("clone", "-n", tmp_path / "up", tmp_path / name)
        (tmp_path / name / ".git" / "HEAD").rename(tmp_path / f"{name}-HEAD")
        making.consider(tmp_path / name, GIT, Arrival.MADE)
        (tmp_path / f"{name}-HEAD").rename(tmp_path / name / ".git" / "HEAD")
    making.happen(tmp_path / "cloned" / ".git", "HEAD.lock", Change.LEFT)
    assert making.wait(0.3) == [
        Settled(raw(tmp_path / "cloned"), GIT),
        Settled(raw(tmp_path / "copied"), GIT, Incomplete.NOT_CHECKED_OUT),
    ]


def test_a_clone_killed_before_anything_was_fetched_is_interrupted(
    making: Making, tmp_path: Path
) -> None:
    git("init", tmp_path / "one")
    git("config", "remote.origin.url", "file:///none", cwd=tmp_path / "one")
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    expected = Settled(raw(tmp_path / "one"), GIT, Incomplete.INTERRUPTED)
    assert making.wait(0.6) == [expected]


def test_a_copy_without_some_files_is_incomplete_until_git_is_seen_in_it(
    making: Making, clone: Path
) -> None:
    (clone / "d3" / "f3").unlink()
    assert making.consider(clone, GIT, Arrival.MADE) is None
    assert making.wait(2.9) == []
    assert making.wait(0.2) == [Settled(raw(clone), GIT, Incomplete.NOT_CHECKED_OUT)]
    assert making.happen(clone / ".git", "index.lock", Change.LEFT) == [Settled(raw(clone), GIT)]


def test_a_copy_is_settled_when_all_its_files_are_there(
    making: Making, clone: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(clone, copy)
    last = copy / "d3" / "f3"
    last.rename(tmp_path / "kept")
    assert making.consider(copy, GIT, Arrival.MADE) is None
    assert making.wait(1.0) == []
    (tmp_path / "kept").rename(last)
    assert making.wait(1.1) == [Settled(raw(copy), GIT)]


def test_a_whole_copy_waits_for_the_process_that_makes_it(making: Making, clone: Path) -> None:
    making.busy = True
    assert making.consider(clone, GIT, Arrival.MADE) is None
    assert making.wait(60) == []
    making.busy = False
    assert making.wait(2) == [Settled(raw(clone), GIT)]


def test_a_checkout_whose_git_died_is_given_up_and_still_watched(
    making: Making, clone: Path
) -> None:
    (clone / ".git" / "index").rename(clone / ".git" / "index.lock")
    making.consider(clone, GIT, Arrival.MADE)
    assert making.wait(2.9) == []
    assert making.wait(0.2) == [Settled(raw(clone), GIT, Incomplete.NOT_CHECKED_OUT)]
    assert making.candidates.next_due() is None
    assert len(making.candidates) == 0
    (clone / ".git" / "index.lock").rename(clone / ".git" / "index")
    assert making.happen(clone / ".git", "index", Change.CAME, moved=True) == [
        Settled(raw(clone), GIT)
    ]


def test_a_fetch_that_was_killed_is_interrupted(making: Making, tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    pack = tmp_path / "one" / ".git" / "objects" / "pack"
    (pack / "tmp_pack_x").touch()
    making.consider(tmp_path / "one", GIT, Arrival.MADE)
    assert making.wait(0.9) == []
    making.happen(pack, "tmp_pack_x", Change.ALTERED)
    assert making.wait(0.9) == []
    expected = Settled(raw(tmp_path / "one"), GIT, Incomplete.INTERRUPTED)
    assert making.wait(0.2) == [expected]
