"""Worktrees and their repositories move, and discovery follows without a sweep.

In each test, a fresh scan finds the same worktrees of the same repositories.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rootsd.core.inputs import ProjectGone, ProjectObserved
from rootsd.core.model import Parent
from rootsd.vcs.git import repository
from support.engine_harness import EngineHarness, OpenWorld
from support.repositories import fake_repository, git, make_repository, raw

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def main(world: EngineHarness) -> Path:
    """Return a repository with the worktree `tree` beside it."""
    main = make_repository(world.top / "main")
    git("worktree", "add", world.top / "tree", cwd=main)
    world.settle()
    assert world.main_checkouts() == {"main": None, "tree": "main"}
    world.take()
    return main


def _seen(world: EngineHarness, path: Path) -> list[bytes | None]:
    """Return the main checkouts in the new reports about `path`."""
    reported = world.take()
    return [
        each.main_checkout
        for each in reported
        if isinstance(each, ProjectObserved) and each.path == raw(path)
    ]


def _check(world: EngineHarness, expected: dict[str, str | None]) -> None:
    world.settle()
    assert world.main_checkouts() == world.fresh_main_checkouts() == expected


def test_git_moves_a_worktree(world: EngineHarness, main: Path) -> None:
    git("worktree", "move", "tree", world.top / "moved", cwd=main)
    assert _seen(world, world.top / "moved") == [raw(main)]
    _check(world, {"main": None, "moved": "main"})
    git("worktree", "move", "moved", world.top / "again", cwd=main)
    assert _seen(world, world.top / "again") == [raw(main)]


def test_between_the_two_steps_of_a_move_nothing_is_reported(
    world: EngineHarness, main: Path
) -> None:
    moved = (world.top / "tree").rename(world.top / "moved")
    world.engine.handle(world.pumped.pump())
    world.engine.tick()
    assert [type(each) for each in world.engine.take()] == [ProjectGone]
    (main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{moved}/.git\n")
    world.engine.handle(world.pumped.pump())
    (seen,) = world.engine.take()
    assert isinstance(seen, ProjectObserved)
    assert (seen.path, seen.main_checkout) == (raw(moved), raw(main))


@pytest.mark.parametrize("where", ["inside", "main"])
def test_a_worktree_that_a_person_moved_is_repaired_later(
    world: EngineHarness, main: Path, where: str
) -> None:
    moved = (world.top / "tree").rename(world.top / "moved")
    assert _seen(world, moved) == [None]
    _check(world, {"main": None, "moved": None})
    if where == "inside":
        git("worktree", "repair", cwd=moved)
    else:
        git("worktree", "repair", moved, cwd=main)
    assert _seen(world, moved) == [raw(main)]
    _check(world, {"main": None, "moved": "main"})


def test_a_moved_repository_is_repaired_later(world: EngineHarness, main: Path) -> None:
    new = main.rename(world.top / "new")
    world.settle()
    assert world.main_checkouts() == world.fresh_main_checkouts() == {"new": None}
    git("worktree", "repair", cwd=new)
    _check(world, {"new": None, "tree": "new"})


def test_a_worktree_moves_to_another_parent(open_world: OpenWorld, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    world = open_world(Parent(raw(tmp_path / "src")), Parent(raw(other)))
    main = make_repository(world.top / "main")
    git("worktree", "add", world.top / "tree", cwd=main)
    world.take()
    git("worktree", "move", "tree", other / "tree", cwd=main)
    assert _seen(world, other / "tree") == [raw(main)]
    git("worktree", "move", "tree", world.top / "back", cwd=main)
    assert _seen(world, world.top / "back") == [raw(main)]
    _check(world, {"main": None, "back": "main"})


def test_a_container_with_a_repository_and_its_worktrees_moves(world: EngineHarness) -> None:
    box = world.top / "box"
    main = make_repository(box / "main")
    for name in ("one", "two"):
        git("worktree", "add", box / name, cwd=main)
    world.settle()
    new = box.rename(world.top / "new")
    _check(world, {"new/main": None})
    git("worktree", "repair", "../one", "../two", cwd=new / "main")
    _check(world, {"new/main": None, "new/one": "new/main", "new/two": "new/main"})


def test_a_container_with_a_hidden_bare_repository_moves(world: EngineHarness) -> None:
    up = make_repository(world.top.parent / "up")
    box = world.top / "box"
    git("clone", "--bare", up, box / ".bare")
    (box / ".git").write_text("gitdir: ./.bare\n")
    git("worktree", "add", "one", cwd=box)
    world.settle()
    new = box.rename(world.top / "new")
    world.settle()
    git("worktree", "repair", "one", cwd=new)
    world.settle()
    assert world.main_checkouts() == world.fresh_main_checkouts()
    assert world.main_checkouts()["new/one"] == "new"


def test_a_hidden_worktree_moves(world: EngineHarness, main: Path) -> None:
    git("worktree", "add", ".w/a", cwd=main)
    world.settle()
    git("worktree", "move", ".w/a", ".w/b", cwd=main)
    _check(world, {"main": None, "tree": "main", "main/.w/b": "main"})


@pytest.mark.parametrize("delete", ["remove", "prune"])
def test_a_deleted_worktree_is_gone(world: EngineHarness, main: Path, delete: str) -> None:
    if delete == "remove":
        git("worktree", "remove", world.top / "tree", cwd=main)
    else:
        shutil.rmtree(world.top / "tree")
        git("worktree", "prune", cwd=main)
    assert world.take() == [ProjectGone(raw(world.top / "tree"))]
    _check(world, {"main": None})


def _use_relative_links(main: Path, tree: Path, name: str = "tree") -> None:
    """Write what git 2.48 writes with `worktree.useRelativePaths`."""
    entry = main / ".git" / "worktrees" / name
    (entry / "gitdir").write_text(os.path.relpath(tree / ".git", entry) + "\n")
    (tree / ".git").write_text(f"gitdir: {os.path.relpath(entry, tree)}\n")


def test_relative_links_survive_the_move_of_their_container(world: EngineHarness) -> None:
    box = world.top / "box"
    main = make_repository(box / "main")
    git("worktree", "add", box / "tree", cwd=main)
    _use_relative_links(main, box / "tree")
    _check(world, {"box/main": None, "box/tree": "box/main"})
    box.rename(world.top / "new")
    _check(world, {"new/main": None, "new/tree": "new/main"})


def test_a_worktree_with_relative_links_moves(world: EngineHarness, main: Path) -> None:
    _use_relative_links(main, world.top / "tree")
    world.take()
    deep = world.top / "deep"
    deep.mkdir()
    moved = (world.top / "tree").rename(deep / "moved")
    world.engine.handle(world.pumped.pump())
    _use_relative_links(main, moved)
    assert _seen(world, moved) == [raw(main)]
    _check(world, {"main": None, "deep/moved": "main"})


def test_the_first_worktree_of_a_bare_root_is_found_at_once(world: EngineHarness) -> None:
    up = make_repository(world.top.parent / "up")
    bare = world.top / "one.git"
    git("clone", "--bare", up, bare)
    box = world.top / "box"
    git("clone", "--bare", up, box / ".bare")
    (box / ".git").write_text("gitdir: ./.bare\n")
    world.settle()
    world.engine.set_roots(frozenset({raw(bare), raw(box)}), {})
    git("worktree", "add", world.top / ".hidden" / "a", cwd=bare)
    git("worktree", "add", world.top / ".hidden" / "b", cwd=box)
    world.settle()
    assert world.main_checkouts() == world.fresh_main_checkouts()
    assert world.main_checkouts()[".hidden/a"] == "one.git"
    assert world.main_checkouts()[".hidden/b"] == "box"


@pytest.mark.parametrize("checked", [True, False])
def test_a_folder_that_names_the_entry_of_another_worktree_gains_nothing(
    world: EngineHarness, main: Path, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """It arrives by a rename, and the worktree that it claims to be is absent for a while.

    The control does not check the link back.
    """
    if not checked:
        monkeypatch.setattr(repository, "_main_checkout", lambda *_dirs: raw(main))
    fake = world.top.parent / "fake"
    fake.mkdir()
    (fake / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    away = (world.top / "tree").rename(world.top.parent / "away")
    fake.rename(world.top / "fake")
    world.settle()
    away.rename(world.top / "tree")
    world.settle()
    claimed = None if checked else "main"
    expected = {"main": None, "tree": "main", "fake": claimed}
    assert world.main_checkouts() == world.fresh_main_checkouts() == expected
    reported = [each for each in world.reported if isinstance(each, ProjectObserved)]
    seen = {each.main_checkout for each in reported if each.path.endswith(b"/fake")}
    assert seen == {None if checked else raw(main)}


def test_a_folder_that_is_always_written_to_is_reported_after_a_limit(
    world: EngineHarness, main: Path
) -> None:
    moved = (world.top / "tree").rename(world.top / "moved")
    for number in range(200):
        (moved / f"file{number}").touch()
        world.engine.handle(world.pumped.pump())
        world.clock.now += 0.2
        world.engine.tick()
    reported = world.engine.take()
    assert raw(moved) in {each.path for each in reported if isinstance(each, ProjectObserved)}


def test_a_plain_repository_that_moves_does_not_wait(world: EngineHarness) -> None:
    fake_repository(world.top / "one")
    world.settle()
    (world.top / "one").rename(world.top / "two")
    world.engine.handle(world.pumped.pump())
    assert [each.path for each in world.engine.take()] == [
        raw(world.top / "one"),
        raw(world.top / "two"),
    ]
