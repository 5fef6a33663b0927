"""Questions about the trees of all parents together."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rootsd.core.model import Parent
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.parent_trees import ParentTrees
from support.engine_harness import EngineHarness, OpenWorld
from support.repositories import fake_repository, raw


def test_the_innermost_parent_holds_a_path_by_its_components(world: EngineHarness) -> None:
    (tree,) = world.engine.trees
    trees = ParentTrees({b"/a": tree, b"/a/b": tree})
    assert [trees.parent_of(path) for path in (b"/a/b/c", b"/a/bc", b"/a", b"/ab")] == [
        b"/a/b",
        b"/a",
        b"/a",
        None,
    ]
    assert [trees.are_below(path) for path in (b"/", b"/a", b"/a/b", b"/a/b/c")] == [
        True,
        True,
        True,
        False,
    ]


def test_a_tree_is_dropped_with_its_parent_or_with_its_settings(world: EngineHarness) -> None:
    (tree,) = world.engine.trees
    path, parent = tree.parent.path, tree.parent
    trees = ParentTrees({path: tree})
    trees.drop_others({path: parent})
    assert trees == {path: tree}
    trees.drop_others({path: replace(parent, depth=parent.depth + 1)})
    assert trees == {}
    assert len(tree) == 0


def test_a_project_outside_the_trees_is_missing_unless_it_is_skipped(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    world = open_world(Parent(raw(tmp_path / "src"), skip=(b"off",)))
    one = fake_repository(world.top / "one")
    world.settle()
    (tree,) = world.engine.trees
    trees = ParentTrees({tree.parent.path: tree})
    places = (one, world.top / "two", world.top / "off" / "two", tmp_path / "two")
    assert [trees.lack(raw(place)) for place in places] == [False, True, False, False]


def test_a_project_of_any_tree_is_found(world: EngineHarness) -> None:
    one = fake_repository(world.top / "one")
    (tree,) = world.engine.trees
    tree.explore(Arrival.FOUND)
    trees = ParentTrees({tree.parent.path: tree})
    assert trees.hold(raw(one))
    assert not trees.hold(raw(world.top))
