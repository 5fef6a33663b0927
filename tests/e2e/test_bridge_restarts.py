"""Real daemons are killed and replaced under real bridges with clients of all kinds.

In each round every client has open requests when the daemon ends. Each request must be answered
once, with the current list. Changes made while there was no daemon, or by an order afterwards,
must reach every client by its notifications alone.
"""

from __future__ import annotations

import os
import signal
import time
from itertools import cycle, islice

import anyio
import pytest
from anyio import to_thread
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError

from rootsd.link.reconnect import GRACE_S
from support.followers import (
    STOPPED,
    Follower,
    Names,
    WrongAnswer,
    followers,
)
from support.person import Person
from support.sizes import Sizes

HANG_GUARD_S = 180
BURST = 3
STAYS, WANDERS, TURNS = "stays", "wanders", "turns"

# The SDK deprecates what its own legacy mode still has to use.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def person(person: Person) -> Person:
    """Return a person with three approved roots.

    One stays, the folder of one moves away and back, and one is alternately denied and approved.
    """
    for name in (STAYS, WANDERS, TURNS):
        person.clone(name)
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", STAYS, WANDERS, TURNS, "--yes")
    return person


class Rounds:
    """Ends daemons under followers, and checks the lists that they get."""

    def __init__(self, person: Person, clients: list[Follower], patience: float) -> None:
        self._person = person
        self._patience = patience
        self._clients = clients
        self._expected = frozenset({STAYS, WANDERS, TURNS})

    async def killed(self) -> None:
        """Kill the daemon with open requests; then send an order to the daemon that the bridges
        started.
        """
        pid = await to_thread.run_sync(self._person.daemon_pid)
        async with anyio.create_task_group() as group:
            answered = anyio.Event()
            for client in self._clients:
                for _ in range(BURST):
                    group.start_soon(self._ask, client, answered, {self._expected})
            await answered.wait()  # some are answered, most are in flight
            await _kill(pid)
        # All requests may have been answered before the kill; the next daemon is then still
        # starting.
        await self._clients[0].ask()
        await self._order()
        await self._all_know()

    async def killed_until_it_is_noticed(self) -> None:
        """Repeat this while each daemon has answered everything before it is killed."""
        with anyio.fail_after(HANG_GUARD_S):
            while True:
                await self.killed()

    async def replaced(self) -> None:
        """Run `down`, make a change that no daemon sees, and run `up`, with open requests
        throughout.
        """
        valid = {self._expected, self._expected ^ {WANDERS}}
        self._expected ^= {WANDERS}
        started = time.monotonic()
        async with anyio.create_task_group() as group:
            answered = anyio.Event()
            for client in self._clients:
                group.start_soon(self._ask_while_down, client, answered, started, valid)
            await answered.wait()
            await to_thread.run_sync(self._person.rootsd, "down")
            self._wander()
            for client in self._clients:
                group.start_soon(self._ask_while_down, client, answered, started, valid)
            await to_thread.run_sync(self._person.rootsd, "up")
        await self._all_know()

    async def _ask(self, client: Follower, answered: anyio.Event, valid: set[Names]) -> None:
        names = await client.ask()
        answered.set()
        if names not in valid:
            raise WrongAnswer(f"{client.label} was told {names}, not one of {valid}")

    async def _ask_while_down(
        self, client: Follower, answered: anyio.Event, since: float, valid: set[Names]
    ) -> None:
        """Send a request. An error is valid only if `down` lasted longer than bridges wait."""
        try:
            await self._ask(client, answered, valid)
        except (MCPError, WrongAnswer) as error:
            if STOPPED not in str(error) or time.monotonic() - since < GRACE_S:
                raise

    async def _order(self) -> None:
        order = "deny" if TURNS in self._expected else "approve"
        await to_thread.run_sync(self._person.rootsd, order, TURNS)
        self._expected ^= {TURNS}

    def _wander(self) -> None:
        here, there = self._person.parent / WANDERS, self._person.home / WANDERS
        if here.exists():
            here.rename(there)
        else:
            there.rename(here)

    async def _all_know(self) -> None:
        async with anyio.create_task_group() as group:
            for client in self._clients:
                group.start_soon(self._ask, client, anyio.Event(), {self._expected})
                group.start_soon(client.knows, self._expected, self._patience)


async def _kill(pid: int) -> None:
    """Kill another user's or program's process, and wait until it has ended."""
    process = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        await anyio.wait_readable(process)
    finally:
        os.close(process)


async def test_clients_do_not_notice_killed_and_replaced_daemons(
    person: Person, sizes: Sizes
) -> None:
    rounds = sizes.pick(test=2, check=10, soak=30)  # killed and replaced in turn
    clients = sizes.pick(test=3, check=16, soak=48)
    async with followers(clients, person.home) as every:
        house = Rounds(person, every, HANG_GUARD_S)
        for take_away in islice(cycle((house.killed, house.replaced)), rounds):
            with anyio.fail_after(HANG_GUARD_S):
                await take_away()


def faulty(fault: str) -> tuple[str, ...]:
    """Return a bridge with a planted fault."""
    program = "import sys; from rootsd.proxy import replay; "
    program += "from rootsd.proxy.bridge import main, session; "
    program += "from rootsd.wire import mcp_messages; "
    return ("-c", f"{program}{fault}; sys.exit(main.main([]))")


SILENT = (
    "session.BridgeSession._change_notifications = lambda self: b''; "
    "mcp_messages.change_notifications = lambda _: iter(())"
)
FORGETFUL = "replay.Replay.may_repeat = lambda *_: False"


async def test_control_a_bridge_that_drops_notifications_is_found(person: Person) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with followers(2, person.home, bridge=faulty(SILENT)) as every:
            await Rounds(person, every, patience=2.0).replaced()
    assert caught.group_contains(WrongAnswer, match="was not told")


async def test_control_a_bridge_that_does_not_repeat_requests_is_found(person: Person) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with followers(4, person.home, bridge=faulty(FORGETFUL)) as every:
            await Rounds(person, every, HANG_GUARD_S).killed_until_it_is_noticed()
    # A call is lost with the daemon, or the request that opened the stream of changes.
    assert caught.group_contains(
        (WrongAnswer, MCPError), match="before it answered"
    ) or caught.group_contains(SubscriptionLost)
