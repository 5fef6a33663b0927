"""The reports of the engine, on the real kernel and without threads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import (
    LapseReason,
    NestedPolicy,
    ObservedState,
    Parent,
    Project,
    ProjectKind,
)
from rootsd.discovery.mount_context import MountContext
from rootsd.discovery.parent_tree import ParentTree
from rootsd.watch.events import EventOverflow, WatchOutcome, WatchPurpose
from rootsd.watch.polling import PollingWatcher
from support.counted_calls import count_calls
from support.engine_harness import EngineHarness, OpenWorld, run_down
from support.repositories import fake_repository, git, make_repository, raw

pytestmark = pytest.mark.needs("linux")


GIT = ProjectKind.GIT


def test_a_project_is_reported_once(world: EngineHarness) -> None:
    fake_repository(world.top / "one")
    assert [type(reported) for reported in world.take()] == [ProjectObserved]
    world.engine.handle([EventOverflow()])
    for tree in world.engine.trees:
        world.engine.rescan(tree)
    world.engine.sweep()
    assert world.take() == []


def test_the_mounts_are_read_again_only_if_they_may_have_moved(world: EngineHarness) -> None:
    (world.top / "a").mkdir()
    world.settle()

    def work(change: Callable[[], object]) -> int:
        change()
        return count_calls(world.settle)["read_mountinfo"]

    assert work((world.top / "b").mkdir) == 0
    assert work((world.top / "b").rmdir) == 0
    assert work(lambda: fake_repository(world.top / "one")) == 0
    assert work(lambda: shutil.rmtree(world.top / "one")) == 0
    control = "a folder that comes from somewhere may bring mounts"
    assert work(lambda: (world.top / "a").rename(world.top / "c")) > 0, control


def test_a_rename_is_reported_as_gone_and_found(world: EngineHarness) -> None:
    fake_repository(world.top / "a" / "one")
    world.take()
    (world.top / "a").rename(world.top / "b")
    gone, there = world.take()
    assert gone == ProjectGone(raw(world.top / "a" / "one"))
    assert there.path == raw(world.top / "b" / "one")


def test_a_replaced_repository_is_reported_with_its_new_identity(world: EngineHarness) -> None:
    one = fake_repository(world.top / "one")
    (before,) = world.take()
    shutil.rmtree(one)
    fake_repository(one)
    gone, after = world.take()
    assert gone == ProjectGone(raw(one), LapseReason.REPLACED)
    assert isinstance(before, ProjectObserved)
    assert isinstance(after, ProjectObserved)
    assert after.identity != before.identity


def test_projects_on_an_unresponsive_file_system_are_unreachable(
    world: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_repository(world.top / "one")
    (seen,) = world.take()
    world.engine.handle([EventOverflow()])
    assert world.engine.has_deferred_work()
    monkeypatch.setattr(MountContext, "responds", lambda _self, _path: False)
    monkeypatch.setattr(ParentTree, "catch_up", _must_not_check)
    world.engine.catch_up(1)
    assert not world.engine.has_deferred_work()
    assert world.engine.take() == (ProjectUnreachable(seen.path),)
    monkeypatch.undo()
    world.engine.sweep()
    assert world.take() == [seen]


def _must_not_check(_tree: ParentTree, _most: int) -> None:
    raise AssertionError("discovery touched a file system that does not respond")


def test_a_new_repository_above_keeps_the_projects_below_known(world: EngineHarness) -> None:
    fake_repository(world.top / "a" / "one")
    world.take()
    fake_repository(world.top / "a")
    above, below = sorted(world.take(), key=lambda reported: len(reported.path))
    assert isinstance(above, ProjectObserved)
    assert isinstance(below, ProjectObserved)
    assert (above.path, above.proposed) == (raw(world.top / "a"), True)
    assert (below.path, below.proposed) == (raw(world.top / "a" / "one"), False)
    assert world.held() == world.fresh() == {"a": GIT}
    shutil.rmtree(world.top / "a" / "one")
    world.engine.sweep()
    assert world.take() == [ProjectGone(raw(world.top / "a" / "one"))]


def test_projects_below_another_project_are_gone_with_it(world: EngineHarness) -> None:
    fake_repository(world.top / "a" / "one")
    world.settle()
    fake_repository(world.top / "a")
    world.settle()
    shutil.rmtree(world.top / "a")
    world.settle()
    assert world.live() == {}


def test_a_plain_folder_in_the_place_of_a_project_is_not_a_project(world: EngineHarness) -> None:
    fake_repository(world.top / "one")
    world.settle()
    shutil.rmtree(world.top)
    world.settle()
    (world.top / "one").mkdir(parents=True)
    world.settle()
    world.engine.sweep()
    world.settle()
    assert world.live() == {}


def test_a_named_plain_folder_stays_a_project(world: EngineHarness, tmp_path: Path) -> None:
    plain = tmp_path / "elsewhere" / "plain"
    plain.mkdir(parents=True)
    world.engine.probe(raw(plain))
    (seen,) = world.take()
    world.engine.sweep()
    assert world.take() == []
    again = world.engine_on(PollingWatcher())
    assert isinstance(seen, ProjectObserved)
    again.load({seen.path: _kept(seen)})
    again.recheck_orphans()
    assert again.take() == (seen,)


def _kept(seen: ProjectObserved) -> Project:
    """Return the project as the store has it at the next start."""
    observed = ObservedState(seen.kind, seen.identity, datetime(2026, 1, 1, tzinfo=UTC))
    return Project(seen.path, "r7k2", replace(observed, named=seen.named))


def test_a_project_file_removed_while_the_parent_is_away_leaves_no_project(
    world: EngineHarness,
) -> None:
    """No tree was saved for a missing parent, and no person named the folder."""
    one = world.top / "one"
    one.mkdir()
    (one / "go.mod").touch()
    (seen,) = world.take()
    assert isinstance(seen, ProjectObserved)
    away = world.top.rename(world.top.with_name("away"))
    world.engine = world.engine_on(world.pumped.watcher)
    world.engine.load({seen.path: _kept(seen)})
    world.engine.recheck_orphans()
    assert world.take() == [ProjectUnreachable(seen.path)]
    (away / "one" / "go.mod").unlink()
    away.rename(world.top)
    assert world.take() == [ProjectGone(seen.path)]


class _Swapping(PollingWatcher):
    """A watcher that replaces a folder with a link just before it watches the folder below."""

    def __init__(self, swapped: Path, target: Path) -> None:
        super().__init__()
        self._swapped = swapped
        self._target = target

    def watch(self, folder: bytes, purpose: WatchPurpose) -> WatchOutcome:
        if folder == raw(self._swapped / "b") and not self._swapped.is_symlink():
            self._swapped.rename(self._swapped.with_name("away"))
            self._swapped.symlink_to(self._target)
        return super().watch(folder, purpose)


def test_a_folder_swapped_for_a_link_during_the_walk_is_not_followed(
    world: EngineHarness, tmp_path: Path
) -> None:
    secret = fake_repository(tmp_path / "elsewhere" / "b" / "c")
    (world.top / "a" / "b" / "c").mkdir(parents=True)
    swapping = _Swapping(world.top / "a", tmp_path / "elsewhere")
    engine = world.engine_on(swapping)
    (tree,) = engine.trees
    assert tree.has_project(raw(world.top / "a" / "b" / "c")), "it was not led astray"
    run_down(engine, world.clock)
    assert engine.take() == ()
    world.settle()
    world.engine.sweep()
    assert world.take() == []
    assert secret.exists()


def test_three_files_named_like_a_bare_repository_are_not_a_project(world: EngineHarness) -> None:
    (world.top / "one").mkdir()
    for name in ("HEAD", "objects", "refs"):
        (world.top / "one" / name).touch()
    assert world.take() == []
    assert world.fresh() == {}
    (world.top / "one" / "objects").unlink()
    (world.top / "one" / "HEAD").write_text("1" * 40 + "\n")
    (world.top / "one" / "objects").mkdir()
    world.engine.sweep()
    world.settle()
    assert world.live() == {"one": ProjectKind.GIT_BARE}


def test_a_missing_parent_in_a_busy_folder_causes_no_work(
    open_world: OpenWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = open_world(Parent(raw(tmp_path / "busy" / "late")), Parent(raw(tmp_path)))
    (tmp_path / "busy").mkdir()
    world.settle()
    process_lists: list[ParentTree] = []
    monkeypatch.setattr(world.engine, "refresh", process_lists.append)
    (tmp_path / "busy" / "other").mkdir()
    world.settle()
    assert process_lists == []
    (tmp_path / "busy" / "late").mkdir()
    world.settle()
    assert process_lists


def test_a_returned_root_is_watched_again(world: EngineHarness, tmp_path: Path) -> None:
    one = fake_repository(tmp_path / "elsewhere" / "one")
    world.engine.probe(raw(one))
    world.engine.set_roots(frozenset((raw(one),)), {})
    for _ in range(2):
        world.take()
        one.rename(one.with_name("two"))
        assert [type(reported) for reported in world.take()] == [ProjectGone]
        one.with_name("two").rename(one)
        world.engine.probe(raw(one))


def test_a_root_is_reported_again_when_a_hidden_entry_or_its_branch_changes(
    world: EngineHarness, tmp_path: Path
) -> None:
    one = fake_repository(world.top / "one")
    world.take()
    (one / ".mcp.json").touch()
    assert world.take() == [], "it is no root"
    world.engine.set_roots(frozenset((raw(one),)), {})
    world.take()
    (one / "main.py").touch()
    (one / ".git" / "HEAD.lock").write_bytes((one / ".git" / "HEAD").read_bytes())
    assert world.take() == []
    (one / ".mcp.json").write_text("x")
    assert {seen.path for seen in world.take()} == {raw(one)}
    (one / ".git" / "HEAD.lock").rename(one / ".git" / "HEAD")
    assert {seen.path for seen in world.take()} == {raw(one)}
    (one / ".git" / "HEAD").unlink()
    assert world.take() == [], "nobody waits for a look into what is being removed"


def test_nested_repositories_are_reported(open_world: OpenWorld, tmp_path: Path) -> None:
    world = open_world(Parent(raw(tmp_path / "src"), nested=NestedPolicy.VCS))
    fake_repository(world.top / "one")
    world.settle()
    fake_repository(world.top / "one" / "libs" / "two")
    world.settle()
    assert world.held() == world.fresh() == {"one": GIT, "one/libs/two": GIT}


def test_after_lost_events_worktree_links_are_checked_too(
    world: EngineHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without this, the repository would be read because its stamp is too young to be trusted.
    monkeypatch.setattr("rootsd.discovery.parent_tree.racy_cutoff_ns", lambda: 2**62)
    one = world.top / "one"
    git("clone", make_repository(tmp_path / "up"), one)
    # Below a repository, outside every tree.
    git("worktree", "add", one / "trees" / "a", cwd=one)
    world.settle()
    git("worktree", "add", one / "trees" / "b", cwd=one)
    world.pumped.pump()
    world.engine.handle([EventOverflow()])
    world.settle()
    assert set(world.live()) == {"one", "one/trees/a", "one/trees/b"}


def test_configured_project_files_count_and_excluded_ones_do_not(
    open_world: OpenWorld,
    tmp_path: Path,
) -> None:
    parent = Parent(raw(tmp_path / "src"), project_files=(b"Justfile", b"!go.mod"))
    world = open_world(parent)
    for name, file in (("just", "Justfile"), ("go", "go.mod"), ("rust", "Cargo.toml")):
        (world.top / name).mkdir()
        (world.top / name / file).touch()
    world.settle()
    assert world.live() == dict.fromkeys(("just", "rust"), ProjectKind.PROJECT)
    for tree in world.engine.set_parents([replace(parent, project_files=())]):
        world.engine.explore(tree)
    world.engine.recheck_orphans()
    world.settle()
    assert world.live() == dict.fromkeys(("go", "rust"), ProjectKind.PROJECT)
