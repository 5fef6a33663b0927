"""What the trees of several parents say together."""

from __future__ import annotations

from pathlib import Path

from rootsd.app.discovery.candidate import Arrival
from rootsd.app.discovery.territories import Territories
from support.exploring import World
from support.repos import fake_repository, raw


def test_the_innermost_parent_holds_a_path_by_its_components(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tree,) = world.explorer.territories
    trees = Territories({b"/a": tree, b"/a/b": tree})
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
    world.pumped.watcher.stop()


def test_a_project_of_any_tree_is_theirs(tmp_path: Path) -> None:
    world = World(tmp_path)
    one = fake_repository(world.top / "one")
    (tree,) = world.explorer.territories
    tree.explore(Arrival.FOUND)
    trees = Territories({tree.parent.path: tree})
    assert trees.hold(raw(one))
    assert not trees.hold(raw(world.top))
    world.pumped.watcher.stop()
