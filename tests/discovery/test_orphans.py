"""What becomes of projects that no tree holds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import LapseReason
from rootsd.discovery.tracked import Orphans, classify_loss
from rootsd.disk.identity import identify
from rootsd.vcs.probe import probe
from support.repos import fake_repository, raw


class Looks:
    """Probes, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def __call__(self, path: bytes) -> Observation:
        self.asked.append(path)
        return probe(path)


@pytest.fixture
def looks() -> Looks:
    return Looks()


def test_a_folder_without_a_marker_is_a_project_only_if_it_was_named(
    tmp_path: Path, looks: Looks
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    strays = Orphans(looks)
    strays.know((raw(plain),))
    assert strays.look_at_all() == [ProjectGone(raw(plain))]
    strays.name((raw(plain),))
    (seen,) = strays.look_at_all()
    assert isinstance(seen, ProjectObserved)


def test_what_a_tree_holds_is_looked_at_no_more(tmp_path: Path, looks: Looks) -> None:
    strays = Orphans(looks)
    paths = [raw(tmp_path / name) for name in ("found", "gone", "held", "still")]
    strays.know(paths)
    strays.found(paths[0])
    strays.forget(paths[1])
    strays.held(paths[2])
    strays.look_at_all()
    assert looks.asked == paths[3:]
    strays.forget(paths[3])
    assert not strays


def test_what_lay_below_a_lost_project_is_looked_at_once(tmp_path: Path, looks: Looks) -> None:
    strays = Orphans(looks)
    below, beside = raw(tmp_path / "one" / "deep" / "two"), raw(tmp_path / "one-more")
    strays.know((below, beside))
    assert strays.look_below_the_lost() == []
    strays.lost(raw(tmp_path / "one"))
    strays.uncover(raw(tmp_path / "one"))
    assert strays.look_below_the_lost() == [ProjectUnreachable(below)]
    assert strays.look_below_the_lost() == []
    assert looks.asked == [below]


def test_a_lost_project_may_be_there_still(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    assert classify_loss(raw(one), raw(tmp_path), identify(raw(one))) is None
    assert classify_loss(raw(one), raw(tmp_path), None) is None


def test_a_lost_project_whose_place_is_empty_or_taken_is_gone(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    known, gone = identify(raw(one)), ProjectGone(raw(one))
    another = replace(known, handle=b"another", born_ns=1)
    replaced = ProjectGone(raw(one), LapseReason.REPLACED)
    assert classify_loss(raw(one), raw(tmp_path), another) == replaced
    shutil.rmtree(one / ".git")
    without_git = ProjectGone(raw(one), LapseReason.RETARGETED)
    assert classify_loss(raw(one), raw(tmp_path), known) == without_git
    assert classify_loss(raw(one), raw(tmp_path), replace(known, git=None)) == gone
    one.rmdir()
    assert classify_loss(raw(one), raw(tmp_path), known) == gone
    one.symlink_to(tmp_path)
    assert classify_loss(raw(one), raw(tmp_path), known) == replaced


def test_a_lost_project_on_another_file_system_is_out_of_reach(tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "one")
    known = replace(identify(raw(one)), filesystem=b"another")
    assert classify_loss(raw(one), raw(tmp_path), known) == ProjectUnreachable(raw(one))


def test_a_project_of_an_earlier_life_whose_file_went_meanwhile_is_gone(
    tmp_path: Path, looks: Looks
) -> None:
    strays = Orphans(looks)
    strays.know((raw(tmp_path),))
    strays.name((raw(tmp_path),))  # as every folder without a repository that was known
    strays.held(raw(tmp_path))
    strays.lost(raw(tmp_path))
    assert strays.look_at_all() == [ProjectGone(raw(tmp_path))]
