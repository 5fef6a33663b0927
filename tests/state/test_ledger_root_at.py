"""The root that one path lies in is verified, and what has no say in it is not looked at."""

from __future__ import annotations

from support.decisions import approved, identity, worktree
from support.fakes import World, path


async def test_the_root_at_a_path_is_verified_and_no_other_is_looked_at() -> None:
    world = World(approved(1), approved(2))
    found = await world.ledger.root_at(path(1) + b"/in")
    assert found == world.ledger.catalog.roots[path(1)]
    world.disk.folders[path(1)] = identity(10)
    del world.disk.folders[path(2)]
    assert await world.ledger.root_at(path(1) + b"/in") is None
    assert world.published() == {path(2)}, "nobody looked there"
    assert await world.told() == set()


async def test_a_worktree_is_no_root_once_the_folder_of_its_main_checkout_was_replaced() -> None:
    tree = worktree(2, main=1)
    world = World(approved(1), tree)
    assert tree.observed.identity is not None
    world.disk.folders[path(2)] = tree.observed.identity
    assert await world.ledger.root_at(path(2)) == world.ledger.catalog.roots[path(2)]
    world.disk.folders[path(1)] = identity(10)
    assert await world.ledger.root_at(path(2)) is None
