"""The tracker of sessions by the programs behind their connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio

from rootsd.core.model import SessionKey
from rootsd.core.processes import Process, ProcessChain
from rootsd.mcp.sessions.tracker import SessionTracker
from support.ledger_harness import HANG_GUARD

AGENT = Process(10, 100, 1, b"claude", (b"claude",))
PUMP = Process(30, 300, 10, b"rootsd", (b"rootsd", b"bridge"))
KEY = SessionKey("process:boot:10:100", "claude, pid 10")


class Machine:
    """Two processes. `sees` is false if processes cannot be read."""

    def __init__(self) -> None:
        self.sees = True
        self.processes = {10: (AGENT,), 30: (PUMP, AGENT)}
        self.gone = anyio.Event()
        self.closed = 0

    async def look(self, pids: Sequence[int]) -> Mapping[int, ProcessChain] | None:
        return {pid: self.processes.get(pid, ()) for pid in pids} if self.sees else None

    def watch(self, pid: int) -> Machine:
        assert pid == 10
        return self

    def has_gone(self) -> bool:
        return self.gone.is_set()

    async def ended(self) -> None:
        await self.gone.wait()

    def close(self) -> None:
        self.closed += 1


def hosts(machine: Machine) -> SessionTracker:
    return SessionTracker(machine.look, machine.watch, "boot")


async def test_a_session_runs_until_its_program_ends() -> None:
    machine = Machine()
    known = hosts(machine)
    member = await known.membership(30, "c1")
    assert member.key == KEY
    assert known.is_over(KEY), "nobody watches it yet"
    assert await known.track(KEY)
    assert not known.is_over(KEY)
    looked = anyio.Event()

    async def look() -> None:
        assert known.is_over(KEY)
        looked.set()

    async with anyio.create_task_group() as group:
        group.start_soon(known.run, look)
        machine.gone.set()
        with anyio.fail_after(HANG_GUARD):
            await looked.wait()
        group.cancel_scope.cancel()
    assert not await known.track(KEY)


async def test_a_program_that_cannot_be_found_again_has_ended() -> None:
    machine = Machine()
    known = hosts(machine)
    machine.processes[10] = (Process(10, 999, 1, b"other"),)
    assert not await known.track(KEY), "its pid is that of another process by now"
    machine.sees = False
    assert not await known.track(KEY)
    assert known.is_over(KEY)
    assert machine.closed == 2
    assert not await known.track(SessionKey("process:earlier:10:100", "claude"))


async def test_an_unreadable_program_ends_with_its_connection() -> None:
    machine = Machine()
    machine.sees = False
    known = hosts(machine)
    member = await known.membership(30, "c1")
    with known.connected(member):
        assert await known.track(member.key)
    assert known.is_over(member.key)


async def test_the_lineage_of_a_session_is_that_of_its_own_process() -> None:
    machine = Machine()
    known = hosts(machine)
    parent = Process(5, 50, 1, b"rootsd", (b"rootsd", b"confine"))
    machine.processes[10] = (AGENT, parent)
    assert await known.lineage_of(KEY) == {KEY.id, "process:boot:5:50"}
    assert await known.lineage_of(SessionKey("connection:c1", "?")) == set()
    machine.processes[10] = (Process(10, 999, 1, b"other"), parent)
    assert await known.lineage_of(KEY) == set(), "its pid is that of another process by now"
