"""The RootsSource that reads the ledger."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from rootsd.core.catalog import Catalog
from rootsd.core.errors import Busy, NotPresent
from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved
from rootsd.core.model import Identity, ProjectKind, PublishedSet, SessionKey
from rootsd.core.wall_peers import PeerPlace, WallPeer
from rootsd.mcp.sessions.request_bounds import RootRequestLimits
from rootsd.mcp.sessions.requests import RootRequestQueue
from rootsd.mcp.sessions.source import LedgerRootsSource
from rootsd.mcp.sessions.walls import WalledSource
from rootsd.mcp.source import RootsSource
from rootsd.net.fair_scheduler import SHORT_TURN_S
from support.ledger_harness import HANG_GUARD, FakeSessions, LedgerHarness, at, deny, path
from support.repositories import raw
from support.sample_decisions import approved, identity


async def look(path: bytes) -> Observation:
    return ProjectGone(path)


async def propose(path: bytes) -> None:
    raise NotPresent("there is nothing")


AGENT = SessionKey("process:b:1:2", "agent, pid 1")


async def at_once(_: bytes) -> None:
    pass


def supplying(
    world: LedgerHarness,
    real_path: Callable[[bytes], bytes] = os.path.realpath,
    limits: RootRequestLimits | None = None,
    scanned: Callable[[bytes], Awaitable[None]] = at_once,
) -> LedgerRootsSource:
    asking = RootRequestQueue(
        world.ledger,
        observe=look,
        propose=propose,
        sessions=FakeSessions(),
        clock=time.monotonic,
        limits=limits,
    )
    return LedgerRootsSource(world.ledger, real_path, asking, scanned)


async def test_the_source_returns_the_roots_of_the_ledger() -> None:
    world = LedgerHarness(approved(1))
    supplier = supplying(world)
    before = await supplier.current()
    assert [root.path for root in before.roots] == [path(1)]
    await world.ledger.execute([deny(1)])
    with anyio.fail_after(HANG_GUARD):
        assert (await supplier.wait_past(before.revision)).roots == ()


class SlowWalls:
    """Walls that show a change once `shown` is set."""

    def __init__(self) -> None:
        self.shown = anyio.Event()

    def scopes_of(self, *_: object) -> None:
        return None

    async def wait_for_change(self) -> None:
        raise AssertionError

    async def catch_up(self) -> None:
        await self.shown.wait()


async def test_a_client_behind_a_wall_hears_of_a_change_once_the_wall_shows_it() -> None:
    """The control is a client outside."""
    world, walls = LedgerHarness(approved(1)), SlowWalls()
    outside = supplying(world)
    peer = WallPeer(PeerPlace.HIDDEN)

    async def locate() -> WallPeer:
        return peer

    inside = WalledSource(outside, walls, peer, frozenset(), locate)
    revision = world.ledger.revision
    heard = []

    async def listen(name: str, source: RootsSource) -> None:
        await source.wait_past(revision)
        heard.append(name)

    await world.ledger.execute([deny(1)])
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(listen, "inside", inside)
            await anyio.wait_all_tasks_blocked()
            await listen("outside", outside)
            walls.shown.set()
    assert heard == ["outside", "inside"]


async def test_a_link_that_leads_out_of_a_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to("../elsewhere")
    supplier = supplying(LedgerHarness())
    outside = await supplier.canonical(raw(tmp_path) + b"/elsewhere/secret")
    assert await supplier.canonical(raw(tmp_path) + b"/root/out/secret") == outside
    assert not outside.startswith(await supplier.canonical(raw(tmp_path) + b"/root"))


async def test_a_caller_may_give_up_on_a_hung_disk() -> None:
    answers = threading.Event()
    entered = threading.Event()

    def hang(path: bytes) -> bytes:
        entered.set()
        assert answers.wait(HANG_GUARD)
        return path

    supplier = supplying(LedgerHarness(), hang)
    async with anyio.create_task_group() as group:
        group.start_soon(supplier.canonical, b"/nfs/a")
        await to_thread.run_sync(entered.wait)
        group.cancel_scope.cancel()
    answers.set()


async def test_too_many_requests_are_refused() -> None:
    supplier = supplying(LedgerHarness(), limits=RootRequestLimits(burst=1))
    supplier.request(b"/src/a", "an agent", "to read it", AGENT, AGENT.label)
    with pytest.raises(Busy):
        supplier.request(b"/src/a", "an agent", "to read it", AGENT, AGENT.label)


async def test_callers_in_one_turn_share_a_verification_that_began_after_their_calls() -> None:
    world = LedgerHarness(approved(1))
    supplier = supplying(world)
    answers: list[PublishedSet] = []

    async def ask() -> None:
        answers.append(await supplier.current())

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(ask)
    assert len(answers) == 50
    assert len(world.disk.asked) == 1
    del world.disk.folders[path(1)]
    assert (await supplier.current()).roots == ()


async def test_callers_share_the_verification_that_follows_a_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, loop, now = LedgerHarness(approved(1)), asyncio.get_running_loop(), 0.0
    supplier, verify = supplying(world), world.disk.verify
    monkeypatch.setattr(loop, "time", lambda: now)

    async def verify_slowly(roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        nonlocal now
        now += 4 * SHORT_TURN_S
        return await verify(roots)

    monkeypatch.setattr(world.disk, "verify", verify_slowly)
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(supplier.current)
            await anyio.lowlevel.checkpoint()
    assert 50 / 5 <= len(world.disk.asked) <= 50 / 4


async def test_another_caller_leads_if_the_leader_is_canceled() -> None:
    world = LedgerHarness(approved(1))
    supplier = supplying(world)
    answers: list[PublishedSet] = []

    async def ask() -> None:
        answers.append(await supplier.current())

    async with anyio.create_task_group() as asking, anyio.create_task_group() as leading:
        leading.start_soon(supplier.current)
        await anyio.lowlevel.checkpoint()
        asking.start_soon(ask)
        asking.start_soon(ask)
        leading.cancel_scope.cancel()
    assert [len(published.roots) for published in answers] == [1, 1]


async def test_every_caller_gets_the_error_of_a_failed_verification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = LedgerHarness(approved(1))
    supplier = supplying(world)
    failures: list[str] = []

    def fail(roots: Mapping[bytes, Identity]) -> Sequence[Observation]:
        raise Busy("not now")

    async def ask() -> None:
        with pytest.raises(Busy):
            await supplier.current()
        failures.append("heard")

    monkeypatch.setattr(world.disk, "verify", fail)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask)
    assert len(failures) == 3


@pytest.mark.parametrize(
    ("link", "is_other_tree"),
    [("gitdir: /x/.git/worktrees/fix\n", True), ("gitdir: /x/.git/modules/lib\n", False)],
    ids=["worktree", "submodule"],
)
async def test_a_worktree_that_is_no_root_is_not_in_the_root_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, link: str, is_other_tree: bool
) -> None:
    monkeypatch.setattr("rootsd.mcp.sessions.source._NEW_WORKTREE_S", 0)
    world = LedgerHarness(at(os.fsencode(tmp_path), approved(1)))
    inner = tmp_path / ".trees" / "fix"
    inner.mkdir(parents=True)
    (inner / ".git").write_text(link)
    for folder in (inner, inner / "sub"):
        start = await supplying(world).session_start(os.fsencode(folder))
        assert start.anchor == os.fsencode(inner if is_other_tree else tmp_path)


async def test_a_session_in_a_worktree_that_was_made_again_starts_once_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").write_text("gitdir: /x/.git/worktrees/fix\n")
    tree, waiting, started = os.fsencode(tmp_path), anyio.Event(), anyio.Event()
    world = LedgerHarness(at(tree, approved(1)))
    world.disk.is_trusting = False
    world.disk.folders[tree] = again = identity(2)
    wait_for_change = world.ledger.wait_for_change

    def wait(catalog: Catalog) -> Awaitable[Catalog]:
        waiting.set()
        return wait_for_change(catalog)

    monkeypatch.setattr(world.ledger, "wait_for_change", wait)

    async def start() -> None:
        assert (await supplying(world).session_start(tree)).anchor == tree
        started.set()

    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await waiting.wait()
            assert not started.is_set()
            await world.ledger.apply_events([ProjectObserved(tree, ProjectKind.GIT, again)])
            await started.wait()
