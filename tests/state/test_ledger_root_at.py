"""Verifying the root at one path reads only the folders that matter for it."""

from __future__ import annotations

from support.ledger_harness import LedgerHarness, path
from support.sample_decisions import approved, identity, worktree


async def test_only_the_root_at_the_path_is_verified() -> None:
    world = LedgerHarness(approved(1), approved(2))
    found = await world.ledger.root_at(path(1) + b"/in")
    assert found == world.ledger.catalog.roots[path(1)]
    world.disk.folders[path(1)] = identity(10)
    del world.disk.folders[path(2)]
    assert await world.ledger.root_at(path(1) + b"/in") is None
    assert world.published() == {path(2)}, "nobody looked there"
    assert await world.told() == set()


async def test_a_worktree_is_not_a_root_after_its_main_checkout_was_replaced() -> None:
    tree = worktree(2, main=1)
    world = LedgerHarness(approved(1), tree)
    assert tree.observed.identity is not None
    world.disk.folders[path(2)] = tree.observed.identity
    assert await world.ledger.root_at(path(2)) == world.ledger.catalog.roots[path(2)]
    world.disk.folders[path(1)] = identity(10)
    assert await world.ledger.root_at(path(2)) is None
