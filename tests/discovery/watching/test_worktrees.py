"""Worktrees outside the walked folders are found from their main repository, and the watched state
equals a scan.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import NestedPolicy, Parent, ProjectKind
from support.engine_harness import EngineHarness, OpenWorld
from support.repositories import git, make_repository, raw

pytestmark = pytest.mark.needs("linux")

GIT, TREE = ProjectKind.GIT, ProjectKind.GIT_WORKTREE


@pytest.fixture
def up(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "up")


def test_a_hidden_bare_repository_and_its_worktrees(up: Path, world: EngineHarness) -> None:
    top = world.top / "proj"
    git("clone", "--bare", up, top / ".bare")
    (top / ".git").write_text("gitdir: ./.bare\n")
    git("worktree", "add", "main", cwd=top)
    world.settle()
    git("worktree", "add", "-b", "other", "other", cwd=top)
    world.settle()
    expected = {"proj": GIT, "proj/main": TREE, "proj/other": TREE}
    assert world.live() == world.fresh() == expected
    git("worktree", "remove", "other", cwd=top)
    world.settle()
    assert world.live() == world.fresh() == {"proj": GIT, "proj/main": TREE}


def test_a_worktree_in_a_hidden_folder_of_its_repository(up: Path, world: EngineHarness) -> None:
    main = world.top / "one"
    git("clone", up, main)
    git("worktree", "add", ".claude/worktrees/a", cwd=main)
    world.settle()
    git("worktree", "add", ".claude/worktrees/b", cwd=main)
    world.settle()
    trees = {f"one/.claude/worktrees/{name}": TREE for name in "ab"}
    assert world.live() == world.fresh() == {"one": GIT, **trees}
    shutil.rmtree(main)
    world.settle()
    assert world.live() == world.fresh() == {}


def test_the_first_worktree_of_a_root_is_found_at_once(up: Path, world: EngineHarness) -> None:
    main = world.top / "one"
    git("clone", up, main)
    world.settle()
    world.engine.set_roots(frozenset({raw(main)}), {})
    git("worktree", "add", ".hidden/tree", cwd=main)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT, "one/.hidden/tree": TREE}
    git("worktree", "remove", ".hidden/tree", cwd=main)
    git("worktree", "add", ".hidden/again", cwd=main)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT, "one/.hidden/again": TREE}


def test_outside_parents_and_in_skipped_folders_no_worktree_is_proposed(
    up: Path, open_world: OpenWorld, tmp_path: Path
) -> None:
    world = open_world(Parent(raw(tmp_path / "src"), skip=(b"scratch", b"tmp-*")))
    main = world.top / "one"
    git("clone", up, main)
    for number, place in enumerate(("scratch/a", "x/tmp-1/b", "../outside", "kept")):
        git("worktree", "add", "-b", f"b{number}", world.top / place, cwd=main)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT, "kept": TREE}


def test_a_moved_main_repository_keeps_its_links(up: Path, world: EngineHarness) -> None:
    git("clone", up, world.top / "one")
    git("worktree", "add", ".w/a", cwd=world.top / "one")
    world.settle()
    (world.top / "one").rename(world.top / "two")
    world.settle()
    assert world.live() == world.fresh() == {"two": GIT}
    git("worktree", "repair", ".w/a", cwd=world.top / "two")
    world.settle()
    assert world.live() == world.fresh() == {"two": GIT, "two/.w/a": TREE}


def test_links_are_followed_after_the_last_is_replaced_at_once(
    up: Path, world: EngineHarness
) -> None:
    main = world.top / "one"
    git("clone", up, main)
    git("worktree", "add", ".w/a", cwd=main)
    world.settle()
    git("worktree", "remove", ".w/a", cwd=main)
    git("worktree", "add", ".w/b", cwd=main)
    world.settle()
    git("worktree", "add", ".w/c", cwd=main)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT, "one/.w/b": TREE, "one/.w/c": TREE}


def test_a_worktree_ends_with_its_main_repository_and_returns_with_it(
    up: Path, world: EngineHarness
) -> None:
    main, beside = world.top / "one", world.top / "beside"
    git("clone", up, main)
    world.settle()
    git("worktree", "add", beside, cwd=main)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT, "beside": TREE}
    main.rename(world.top / "two")
    world.settle()
    assert world.live() == world.fresh() == {"two": GIT}
    (world.top / "two").rename(main)
    world.settle()
    assert world.live() == world.fresh() == {"one": GIT, "beside": TREE}
    shutil.rmtree(main)
    world.settle()
    assert world.live() == world.fresh() == {}


def test_worktrees_of_a_repository_that_no_parent_holds_any_more_are_not_proposed(
    up: Path, world: EngineHarness
) -> None:
    git("clone", up, world.top / "one")
    git("worktree", "add", world.top / "one" / "tree", cwd=world.top / "one")
    world.settle()
    world.take()
    world.engine.set_parents([])
    world.engine.recheck_orphans()
    seen = [each for each in world.take() if isinstance(each, ProjectObserved)]
    assert {world.name(each.path) for each in seen if not each.proposed} == {"one", "one/tree"}


def test_submodules_of_a_parent_that_is_a_repository_are_parts_of_it(
    up: Path, world: EngineHarness, tmp_path: Path
) -> None:
    """A clone in it is a project of its own; git does not know it."""
    git("init", world.top)
    git("-c", "protocol.file.allow=always", "submodule", "add", up, "libs/up", cwd=world.top)
    git("commit", "-m", "add", cwd=world.top)
    git("clone", up, world.top / "tools" / "clone")
    (tmp_path / "modules").mkdir()
    git("init", "--separate-git-dir", tmp_path / "modules" / "x", world.top / "sep")
    world.settle()
    assert world.live() == world.fresh() == {".": GIT, "tools/clone": GIT, "sep": GIT}
    git("submodule", "deinit", "-f", "libs/up", cwd=world.top)
    (world.top / "libs" / "up").rmdir()
    git("clone", up, world.top / "libs" / "up")
    world.settle()
    assert world.live()["libs/up"] is GIT


@pytest.mark.parametrize("nested", [NestedPolicy.VCS, NestedPolicy.MEMBERS])
def test_submodules_of_a_parent_are_proposed_if_nested_projects_are(
    up: Path, open_world: OpenWorld, tmp_path: Path, nested: NestedPolicy
) -> None:
    world = open_world(Parent(raw(tmp_path / "src"), nested=nested))
    git("init", world.top)
    git("-c", "protocol.file.allow=always", "submodule", "add", up, "libs/up", cwd=world.top)
    world.settle()
    assert world.live()["libs/up"] is ProjectKind.GIT_SUBMODULE


def test_submodules_of_a_worktree_that_is_a_parent_are_parts_of_it(
    up: Path, world: EngineHarness, tmp_path: Path
) -> None:
    allowed = ("-c", "protocol.file.allow=always")
    main = make_repository(tmp_path / "main")
    git(*allowed, "submodule", "add", up, "libs/up", cwd=main)
    git("commit", "-m", "add", cwd=main)
    world.top.rmdir()
    git("worktree", "add", world.top, cwd=main)
    git(*allowed, "submodule", "update", "--init", cwd=world.top)
    world.settle()
    assert world.live() == world.fresh() == {".": TREE}
