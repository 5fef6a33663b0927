"""Kill a run proxy, its server, or its daemon at a random moment, and check the client and the
leftovers.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import psutil

from rootsd.cli.answers import control_client as control
from rootsd.wire.daemon import StatusQuery
from support.bridges import HANG_GUARD_S, INITIALIZE, notice, request
from support.leftover_processes import processes_with
from support.polling import until
from support.run_proxy import RunProxyClient, started

CALLS = 30
_LONGEST_S = 0.5  # the kill comes at most this long after the start
_MARK = "ROUND"


class Victim(StrEnum):
    """The process to kill."""

    SERVER = "server"
    """What the run proxy has started."""
    WORKER = "worker"
    """What that has started in turn, as npx does."""
    PROXY = "proxy"
    DAEMON = "daemon"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one round.

    It counts the calls with a result, with an error, and without any answer before the proxy hung
    up, and names the processes left over.
    """

    answered: int
    refused: int
    left: list[psutil.Process]

    @property
    def is_silent(self) -> bool:
        return self.answered + self.refused < CALLS


def a_round(line: Sequence[str], victim: Victim, chance: random.Random) -> Outcome:
    """Start the proxy `line`, let its client send everything, and kill the `victim`."""
    mark = str(chance.random())
    with started(list(line), **{_MARK: mark}) as client:
        client.say(
            request("i", "initialize", INITIALIZE), notice("notifications/initialized"),
            *(request(n, "tools/call", _call(n)) for n in range(CALLS)),
        )  # fmt: skip
        with suppress(subprocess.TimeoutExpired):
            client.process.wait(chance.uniform(0, _LONGEST_S))
        _kill(client, victim)
        heard = _heard(client, victim)
        client.process.kill()  # a running server ignores the end of its input
        client.process.wait(HANG_GUARD_S)
    _, left = psutil.wait_procs(processes_with(_MARK, mark), HANG_GUARD_S)
    return Outcome(heard[True], heard[False], left)


def remaining_after_an_answer(line: Sequence[str], patience: float) -> list[psutil.Process]:
    """Start the proxy `line`, kill it after its server's first answer, and return what remains."""
    mark = "after an answer"
    with started(list(line), **{_MARK: mark}) as client:
        client.shake_hands()
        client.process.kill()
        client.process.wait(HANG_GUARD_S)
    _, left = psutil.wait_procs(processes_with(_MARK, mark), patience)
    return left


def _call(number: int) -> dict[str, object]:
    name, value = (("echo", "x" * 1000), ("flood", 20), ("spawn", None))[number % 3]
    return {"name": name, "arguments": value}


def _kill(client: RunProxyClient, victim: Victim) -> None:
    match victim:
        case Victim.PROXY:
            client.process.kill()
        case Victim.DAEMON:
            psutil.Process(control.call(StatusQuery())["daemon"]["pid"]).kill()
        case Victim.SERVER | Victim.WORKER:
            with suppress(psutil.NoSuchProcess):
                _below(client, victim).kill()


def _below(client: RunProxyClient, victim: Victim) -> psutil.Process:
    """Wait for the server's process, or for the one that it started first, and return it."""
    proxy = psutil.Process(client.process.pid)
    own = os.getpgid(proxy.pid)

    def found() -> list[psutil.Process]:
        if client.process.poll() is not None:
            raise psutil.NoSuchProcess(proxy.pid)
        servers = [each for each in proxy.children() if _group(each) not in (own, each.pid, None)]
        return servers if victim is Victim.SERVER else [w for s in servers for w in s.children()]

    return until(found)[0]


def _group(process: psutil.Process) -> int | None:
    """Return the process group: the keeper's own, which a server shares once it runs."""
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None


def _heard(client: RunProxyClient, victim: Victim) -> Counter[bool]:
    """Count the results and the errors until every call has one or the proxy hangs up."""
    heard: Counter[bool] = Counter()
    while heard.total() < CALLS and (line := client.stdout.readline()):
        if not line.endswith(b"\n"):
            assert victim is Victim.PROXY, "a line that was cut short"
            break
        message = json.loads(line)
        if message.get("id") in range(CALLS):
            heard["result" in message] += 1
    return heard
