"""The cost of `rootsd bridge` for a client, compared with a stdio server of the SDK with the same
tools.

It measures the start until the first answer, a call, and memory.

Run: make bench ARGS='-k bench_bridge'
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from mcp import Client as SdkClient
from mcp.client.stdio import StdioServerParameters

from bench.measuring import memory, table, times
from support.bridges import INITIALIZE, META_2026, Client, notice, request
from support.person import Person
from support.sizes import Sizes

ROOTS = 20
TESTS = Path(__file__).parent.parent
PLAIN, BRIDGE = "SDK server on stdio", "rootsd bridge"

HANDSHAKE = request(0, "initialize", INITIALIZE)
DISCOVERY = request(0, "server/discover", {"_meta": META_2026})
CALL = {"name": "list_roots", "arguments": {}}
CALLS = {"legacy": CALL, "2026-07-28": {**CALL, "_meta": META_2026}}


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[dict[str, list[str]]]:
    """Both servers with the same roots, the one through a daemon that runs."""
    person = Person(tmp_path)
    folders = [person.clone(f"project-{number:02}") for number in range(ROOTS)]
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", *(folder.name for folder in folders), "--yes")
    plain = [sys.executable, str(TESTS / "bench" / "plain_server.py"), *map(str, folders)]
    try:
        yield {PLAIN: plain, BRIDGE: [sys.executable, "-m", "rootsd", "bridge"]}
    finally:
        person.rootsd("down")


@contextmanager
def server(command: list[str]) -> Iterator[Client]:
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as process:
        try:
            yield Client(process)
        finally:
            process.kill()


def start(command: list[str], opening: bytes) -> float:
    """Milliseconds from the start of the process to its first answer."""
    begin = time.perf_counter()
    with server(command) as client:
        client.say(opening)
        assert "result" in client.hear()
        return (time.perf_counter() - begin) * 1e3


def interleaved(rounds: int, actions: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The medians of what the actions measure, all taking turns; a first round warms up."""
    measured: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            taken = action()
            if number:
                measured[name].append(taken)
    return {name: statistics.median(each) for name, each in measured.items()}


def call(client: Client, line: bytes) -> float:
    """Microseconds of one call of `list_roots`."""
    begin = time.perf_counter()
    client.say(line)
    answer = client.stdout.readline()
    taken = (time.perf_counter() - begin) * 1e6
    assert b"- project-19: " in answer
    return taken


@pytest.mark.parametrize(
    ("era", "opening"), [("legacy", HANDSHAKE), ("2026-07-28", DISCOVERY)], ids=["legacy", "2026"]
)
def test_start_to_first_answer(
    commands: dict[str, list[str]], sizes: Sizes, era: str, opening: bytes
) -> None:
    rounds = sizes.pick(test=15, check=30, soak=60)
    starts = {
        name: (lambda words=words: start(words, opening)) for name, words in commands.items()
    }
    took = interleaved(rounds, starts)
    table(
        f"Start to first answer, {era}",
        ("", "median ms", "bridge is faster"),
        [(name, ms, times(ms, took[BRIDGE])) for name, ms in took.items()],
    )


@pytest.mark.parametrize("era", CALLS)
def test_a_call_and_memory(commands: dict[str, list[str]], sizes: Sizes, era: str) -> None:
    """By hand: what the servers and the pipes take, and nothing of a client."""
    rounds = sizes.pick(test=1_000, check=3_000, soak=10_000)
    line = request(1, "tools/call", CALLS[era])
    with ExitStack() as stack:
        clients = {name: stack.enter_context(server(words)) for name, words in commands.items()}
        for client in clients.values():
            if era == "legacy":
                client.say(HANDSHAKE)
                assert "result" in client.hear()
                client.say(notice("notifications/initialized"))
        calls = {name: partial(call, client, line) for name, client in clients.items()}
        took = interleaved(rounds, calls)
        held = {name: memory(client.process.pid).rss_mb for name, client in clients.items()}
    show_calls(f"by hand, {era}", took, held)


@pytest.mark.parametrize("mode", CALLS)
async def test_a_call_of_the_sdk_client(
    commands: dict[str, list[str]], sizes: Sizes, mode: str
) -> None:
    """As clients call: the SDK's own client at both ends of the comparison."""
    rounds = sizes.pick(test=500, check=2_000, soak=10_000)
    measured: dict[str, list[float]] = {name: [] for name in commands}
    async with AsyncExitStack() as stack:
        clients = {}
        for name, (command, *arguments) in commands.items():
            environment = {**os.environ, "PYTHONPATH": str(TESTS)}
            words = StdioServerParameters(command=command, args=arguments, env=environment)
            clients[name] = await stack.enter_async_context(SdkClient(words, mode=mode))
        for number in range(rounds + 1):
            for name, client in clients.items():
                begin = time.perf_counter()
                answer = await client.call_tool("list_roots", {})
                if number:
                    measured[name].append((time.perf_counter() - begin) * 1e6)
                assert not answer.is_error
    took = {name: statistics.median(each) for name, each in measured.items()}
    show_calls(f"by the SDK's client, {mode}", took, {})


def show_calls(how: str, took: dict[str, float], held: dict[str, float]) -> None:
    table(
        f"A call of list_roots with {ROOTS} roots, {how}",
        ("", "median us", "against plain", "RSS MB"),
        [
            (name, us, f"{us / took[PLAIN]:.2f} x", held.get(name, "-"))
            for name, us in took.items()
        ],
    )
