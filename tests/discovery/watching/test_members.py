"""Members of workspaces appear and disappear with their folders and declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import NestedPolicy, Parent, ProjectKind
from rootsd.discovery.candidate import Arrival
from rootsd.discovery.parent_tree import ParentTree
from rootsd.disk.markers import WalkRules
from rootsd.watch.events import WatchPurpose
from support.engine_harness import OpenWorld
from support.fake_watchers import RecordingWatcher
from support.repositories import fake_repository, raw
from support.tree_observers import RecordingObserver

pytestmark = pytest.mark.needs("linux")

GIT, PROJECT = ProjectKind.GIT, ProjectKind.PROJECT


def _declare(repository: Path, pattern: str) -> None:
    """Save as editors do: put a new file in the place of the old one."""
    (repository / "new").write_text(f'{{"workspaces": ["{pattern}"]}}')
    (repository / "new").rename(repository / "package.json")


def _package(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "package.json").write_text("{}")


def test_watched_members_equal_a_scan(open_world: OpenWorld, tmp_path: Path) -> None:
    world = open_world(Parent(raw(tmp_path / "src"), nested=NestedPolicy.MEMBERS))
    mono = fake_repository(world.top / "mono")
    _declare(mono, "packages/*")
    _package(mono / "packages" / "a")
    _package(mono / "examples" / "x")
    world.settle()
    assert world.live() == world.fresh() == {"mono": GIT, "mono/packages/a": PROJECT}
    _package(mono / "packages" / "b")
    world.settle()
    assert world.live() == world.fresh()
    assert "mono/packages/b" in world.live()
    _declare(mono, "examples/*")
    world.settle()
    assert world.fresh() == {"mono": GIT, "mono/examples/x": PROJECT}
    assert world.held() == world.fresh()


@pytest.mark.parametrize("declared", ["examples/*", None])
def test_members_follow_a_declaration_that_is_written_in_place(
    open_world: OpenWorld, tmp_path: Path, declared: str | None
) -> None:
    """Some editors and tools write in place. `None`: the file declared nothing before."""
    world = open_world(Parent(raw(tmp_path / "src"), nested=NestedPolicy.MEMBERS))
    mono = fake_repository(world.top / "mono")
    file = mono / "pnpm-workspace.yaml"
    file.write_text(f"packages: ['{declared}']\n" if declared else "")
    _package(mono / "packages" / "a")
    world.settle()
    assert world.live() == {"mono": GIT}
    file.write_text("packages: ['packages/*']\n")
    world.settle()
    assert world.held() == world.fresh() == {"mono": GIT, "mono/packages/a": PROJECT}
    file.write_text("packages: []\n")
    world.settle()
    assert world.held() == world.fresh() == {"mono": GIT}


def test_a_restored_tree_watches_for_declarations(tmp_path: Path) -> None:
    mono = fake_repository(tmp_path / "mono")
    (mono / "package.json").write_text("{}")
    parent = Parent(raw(tmp_path), nested=NestedPolicy.MEMBERS)
    first = ParentTree(parent, WalkRules.of(parent), RecordingWatcher(), RecordingObserver())
    first.explore(Arrival.FOUND)
    watcher = RecordingWatcher()
    again = ParentTree(parent, WalkRules.of(parent), watcher, RecordingObserver())
    again.use_snapshot(first.snapshot())
    again.explore(Arrival.FOUND)
    assert (raw(mono), WatchPurpose.MEMBERS) in watcher.watched
    again.abandon()
    assert (raw(mono), WatchPurpose.MEMBERS) not in watcher.watched


def test_a_saved_tree_keeps_its_members(tmp_path: Path) -> None:
    mono = fake_repository(tmp_path / "mono")
    _declare(mono, "packages/*")
    _package(mono / "packages" / "a")
    parent = Parent(raw(tmp_path), nested=NestedPolicy.MEMBERS)

    def explored(before: ParentTree | None) -> tuple[ParentTree, set[bytes]]:
        sink = RecordingObserver()
        tree = ParentTree(parent, WalkRules.of(parent), RecordingWatcher(), sink)
        tree.use_snapshot(before.snapshot() if before is not None else None)
        tree.explore(Arrival.FOUND)
        while tree.has_deferred_work():
            tree.catch_up(100)
        return tree, sink.present

    first, found = explored(None)
    _, again = explored(first)
    assert found == again == {raw(mono), raw(mono / "packages" / "a")}
