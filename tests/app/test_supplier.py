"""What the daemon offers to publishing."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
from anyio import to_thread

from rootsd.app.supplier import Supplier
from support.decisions import approved
from support.fakes import HANG_GUARD, World, deny, path
from support.repos import raw


async def test_the_roots_are_the_ledgers() -> None:
    world = World(approved(1))
    supplier = Supplier(world.ledger, os.path.realpath)
    before = await supplier.current()
    assert [root.path for root in before.roots] == [path(1)]
    await world.ledger.obey([deny(1)])
    with anyio.fail_after(HANG_GUARD):
        assert (await supplier.wait_past(before.revision)).roots == ()


async def test_a_link_that_leads_out_of_a_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to("../elsewhere")
    supplier = Supplier(World().ledger, os.path.realpath)
    outside = await supplier.canonical(raw(tmp_path) + b"/elsewhere/secret")
    assert await supplier.canonical(raw(tmp_path) + b"/root/out/secret") == outside
    assert not outside.startswith(await supplier.canonical(raw(tmp_path) + b"/root"))


async def test_a_disk_that_does_not_answer_holds_nobody_who_gives_up() -> None:
    answers = threading.Event()
    entered = threading.Event()

    def hang(path: bytes) -> bytes:
        entered.set()
        assert answers.wait(HANG_GUARD)
        return path

    supplier = Supplier(World().ledger, hang)
    async with anyio.create_task_group() as group:
        group.start_soon(supplier.canonical, b"/nfs/a")
        await to_thread.run_sync(entered.wait)
        group.cancel_scope.cancel()
    answers.set()
