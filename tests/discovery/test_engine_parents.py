"""Projects of parents that disappear, appear, move, or are nested."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import Parent, ProjectKind
from rootsd.watch.events import EventOverflow
from support.engine_harness import EngineHarness, OpenWorld
from support.repositories import fake_repository, git, make_repository, raw

pytestmark = pytest.mark.needs("linux")

GIT = ProjectKind.GIT


def test_a_move_of_a_folder_above_the_parents_is_noticed(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    deep = tmp_path / "src" / "x" / "y"
    world = open_world(Parent(raw(deep)))
    fake_repository(deep / "one")
    (seen,) = world.take()
    (tmp_path / "src" / "x").rename(tmp_path / "src" / "z")
    assert world.take() == [ProjectUnreachable(seen.path)]
    (tmp_path / "src" / "x").mkdir()
    assert world.take() == []
    (tmp_path / "src" / "z" / "y").rename(deep)
    assert world.take() == [seen]


def test_a_parent_created_again_is_watched_again(world: EngineHarness) -> None:
    shutil.rmtree(world.top)
    world.settle()
    fake_repository(world.top / "one")
    world.settle()
    fake_repository(world.top / "two")
    world.settle()
    assert set(world.live()) == {"one", "two"}


def test_after_lost_events_no_watch_remains_above_a_missing_parent(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    late = tmp_path / "x" / "y" / "late"
    (tmp_path / "x").mkdir()
    world = open_world(Parent(raw(late)))
    (tmp_path / "x").rename(tmp_path / "old")
    (tmp_path / "x").mkdir()
    world.pumped.pump()
    world.engine.handle([EventOverflow()])
    world.settle()
    one = fake_repository(late / "one")
    assert [reported.path for reported in world.take()] == [raw(one)]


def test_a_parent_inside_another_one_yields_no_duplicates(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    outer, inner = tmp_path / "src", tmp_path / "src" / "work"
    world = open_world(Parent(raw(outer)))
    fake_repository(inner / "one")
    assert len(world.take()) == 1
    for parents in ((Parent(raw(outer)), Parent(raw(inner), depth=1)), (Parent(raw(outer)),)):
        for tree in world.engine.set_parents(parents):
            world.engine.explore(tree)
        assert world.take() == []
        fake_repository(inner / f"of-{len(parents)}")
        assert len(world.take()) == 1


@pytest.mark.parametrize(
    "changes", [{"depth": 1}, {"skip": (b"one",)}, {"skip": (b"a",)}], ids=str
)
def test_a_narrowed_parent_no_longer_proposes_excluded_projects(
    world: EngineHarness, changes: dict[str, Any]
) -> None:
    fake_repository(world.top / "a" / "one")
    (seen,) = world.take()
    assert isinstance(seen, ProjectObserved)
    for tree in world.engine.set_parents([Parent(raw(world.top), **changes)]):
        world.engine.explore(tree)
    world.engine.recheck_orphans()
    assert world.take() == [replace(seen, proposed=False)]


def test_a_named_project_stays_proposed_without_a_parent(world: EngineHarness) -> None:
    world.engine.set_parents([])
    one = fake_repository(world.top / "one")
    seen = world.engine.probe(raw(one))
    assert isinstance(seen, ProjectObserved)
    assert (seen.named, seen.proposed) == (True, True)
    world.take()
    world.engine.recheck_orphans()
    assert world.take() == []


def test_a_removed_parent_proposes_nothing_and_its_projects_stay_known(
    world: EngineHarness,
) -> None:
    one = fake_repository(world.top / "one")
    (seen,) = world.take()
    assert isinstance(seen, ProjectObserved)
    world.engine.set_parents([])
    world.engine.recheck_orphans()
    assert world.take() == [replace(seen, proposed=False)]
    world.engine.recheck_orphans()
    assert world.take() == []
    for tree in world.engine.set_parents([Parent(raw(world.top))]):
        world.engine.explore(tree)
    assert world.take() == [seen]
    world.engine.set_parents([])
    world.engine.recheck_orphans()
    assert world.take() == [replace(seen, proposed=False)]
    shutil.rmtree(one)
    world.engine.sweep()
    assert world.take() == [ProjectGone(raw(one))]


def _reports_of_a_change(world: EngineHarness, *parents: Parent) -> list[Observation]:
    """Use other parents as the service does: it reports before and after it builds each tree."""
    world.take()
    reported: list[Observation] = []
    for tree in world.engine.set_parents(parents):
        reported += world.engine.take()
        world.engine.explore(tree)
        reported += world.engine.take()
    world.engine.recheck_orphans()
    return reported + world.take()


@pytest.mark.parametrize("inner", [0, 1, 2])
def test_a_change_of_the_parents_reports_no_project_that_stays(
    open_world: OpenWorld, tmp_path: Path, inner: int
) -> None:
    """Otherwise, a project that nobody decided about would be found as new again."""
    top = tmp_path / "src"
    others = [Parent(raw(tmp_path / "a")), Parent(raw(tmp_path / "z"))]
    world = open_world(Parent(raw(top)), *others)
    for folder in (top, tmp_path / "a", tmp_path / "z"):
        main = make_repository(folder / "one")
        git("worktree", "add", folder / "tree", cwd=main)
        (folder / "android" / ".repo").mkdir(parents=True)
        fake_repository(folder / "android" / "art")
    world.settle()
    assert len(world.live()) == 12
    new = [Parent(raw(top / "android")), Parent(raw(tmp_path / "z" / "android"))][:inner]
    changed = [replace(each, depth=5) for each in (Parent(raw(top)), *others)]
    reported = _reports_of_a_change(world, *(world.parents if inner else changed), *new)
    assert [each for each in reported if isinstance(each, ProjectGone)] == []
    assert all(each.proposed for each in reported if isinstance(each, ProjectObserved))
    assert world.live() == world.fresh()
