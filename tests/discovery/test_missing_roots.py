"""Discovery reports whatever appears at the path of a missing approved root."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnsafe
from rootsd.core.model import LapseReason, ObservedState, Project, ProjectKind
from support.engine_harness import EngineHarness
from support.repositories import fake_repository, raw
from support.sample_decisions import NOON

pytestmark = pytest.mark.needs("linux")


def _moved_away(world: EngineHarness, root: Path, away: Path) -> None:
    """Approve the root, and move it away."""
    (seen,) = [each for each in world.take() if isinstance(each, ProjectObserved)]
    world.engine.set_roots(frozenset((seen.path,)), {})
    root.rename(away)
    gone = [each for each in world.take() if isinstance(each, ProjectGone)]
    assert [each.lapse for each in gone if each.path == seen.path] == [None]
    observed = ObservedState(seen.kind, seen.identity, NOON, named=seen.named)
    awaited = Project(seen.path, "x", observed)
    world.engine.set_roots(frozenset(), {seen.path: awaited})
    assert world.take() == []


def _replaced(path: Path) -> list[Observation]:
    return [ProjectGone(raw(path), LapseReason.REPLACED)]


@pytest.mark.parametrize("is_link", [True, False])
def test_a_symlink_or_a_folder_without_a_marker_in_the_place_of_a_root_replaces_it(
    world: EngineHarness, is_link: bool
) -> None:
    one, away = fake_repository(world.top / "one"), world.top.parent / "two"
    _moved_away(world, one, away)
    if is_link:
        one.symlink_to(away)
    else:
        one.mkdir()
    assert world.take() == _replaced(one)


def test_a_symlink_created_before_the_root_was_missing_is_reported(world: EngineHarness) -> None:
    one = fake_repository(world.top / "one")
    (seen,) = world.take()
    assert isinstance(seen, ProjectObserved)
    one.rename(world.top.parent / "two")
    world.take()
    one.symlink_to(world.top.parent / "two")
    assert world.take() == []
    known = {seen.path: Project(seen.path, "x", ObservedState(seen.kind, seen.identity, NOON))}
    world.engine.set_roots(frozenset(), known)
    assert world.take() == _replaced(one)


def test_a_symlink_in_the_place_of_a_folder_above_a_root_is_reported(world: EngineHarness) -> None:
    one = fake_repository(world.top / "group" / "one")
    _moved_away(world, world.top / "group", world.top.parent / "elsewhere")
    (world.top / "group").symlink_to(world.top.parent / "elsewhere")
    assert world.take() == [ProjectUnsafe(raw(one), LapseReason.RETARGETED)]


def test_entries_beside_a_missing_root_do_not_replace_it(world: EngineHarness) -> None:
    one = fake_repository(world.top / "one")
    _moved_away(world, one, world.top.parent / "two")
    (world.top / "one-more").mkdir()
    (world.top / "other").symlink_to(world.top.parent / "two")
    assert world.take() == []


@pytest.mark.parametrize("with_marker", [True, False])
def test_a_root_outside_every_parent_is_found_when_it_returns(
    world: EngineHarness, tmp_path: Path, with_marker: bool
) -> None:
    one = tmp_path / "elsewhere" / "one"
    fake_repository(one) if with_marker else one.mkdir(parents=True)
    seen = world.engine.probe(raw(one))
    assert isinstance(seen, ProjectObserved)
    _moved_away(world, one, one.with_name("two"))
    one.with_name("two").rename(one)
    world.engine.recheck_orphans()
    assert world.take() == [seen]
    one.rename(one.with_name("two"))
    world.engine.recheck_orphans()
    assert world.take() == [ProjectGone(raw(one))]


def test_a_root_that_returns_without_git_data_is_reported(world: EngineHarness) -> None:
    one = fake_repository(world.top / "one")
    away = world.top.parent / "two"
    _moved_away(world, one, away)
    (away / ".git").rename(world.top.parent / "git")
    away.rename(one)
    assert world.take() == [ProjectGone(raw(one), LapseReason.RETARGETED)]


def test_a_root_that_returns_as_a_plain_folder_is_not_reported_as_gone_again(
    world: EngineHarness,
) -> None:
    one, away = world.top / "one", world.top.parent / "two"
    (one / ".hg").mkdir(parents=True)
    _moved_away(world, one, away)
    (away / ".hg").rmdir()
    away.rename(one)
    assert world.take() == []
    (one / ".hg").mkdir()
    assert [type(reported) for reported in world.take()] == [ProjectObserved]


def test_a_root_in_a_tree_again_is_left_to_the_tree(world: EngineHarness) -> None:
    one = fake_repository(world.top / "one")
    _moved_away(world, one, world.top.parent / "two")
    (world.top.parent / "two").rename(one)
    (back,) = world.take()
    assert (back.path, isinstance(back, ProjectObserved) and back.kind) == (
        raw(one),
        ProjectKind.GIT,
    )
    world.engine.recheck_orphans()
    assert world.take() == []
