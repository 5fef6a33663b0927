"""The cost of `rootsd run`, compared with the same server without it: a call, many calls at once,
a result of 5 MB, the start, the first call of a server that rootsd does not know, and memory.

Client and servers are written by hand, so the figures include no SDK client.

Run: make bench ARGS='-k bench_run_proxy'
"""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from bench.measuring import memory, table
from support.bridges import INITIALIZE, META_2026, environment, notice, request
from support.mcp_harness import FakeSource, root
from support.real_servers import npm
from support.run_proxy import SCRIPTED, RunProxyClient, command
from support.sizes import Sizes
from support.threaded_publisher import published

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ALONE, RUN = "the server alone", "rootsd run"
BULK = 5_000_000
FLIGHT = 1_000

pytestmark = pytest.mark.needs("npm")


@pytest.fixture(autouse=True)
def roots() -> Iterator[None]:
    with published(FakeSource(*(root(f"/src/project-{number}") for number in range(20)))):
        yield


@contextmanager
def process(words: list[str]) -> Iterator[RunProxyClient]:
    pipe = subprocess.PIPE
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=quiet, env=environment()) as it:
        try:
            yield RunProxyClient(it)
        finally:
            it.kill()


def commands(server: list[str]) -> dict[str, list[str]]:
    return {ALONE: server, RUN: command(*server)}


def complete_handshake(client: RunProxyClient) -> None:
    """Complete the MCP handshake, as clients do. Only then does the server get its roots."""
    client.say(request("i", "initialize", INITIALIZE))
    while client.hear().get("id") != "i":
        continue
    client.say(notice("notifications/initialized"))


def ready(stack: ExitStack, server: list[str]) -> dict[str, RunProxyClient]:
    clients = {}
    for name, words in commands(server).items():
        clients[name] = stack.enter_context(process(words))
        complete_handshake(clients[name])
    return clients


def interleaved(rounds: int, actions: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """What the actions measure, all taking turns; a first round warms up."""
    measured: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            taken = action()
            if number:
                measured[name].append(taken)
    return measured


def answer_to(client: RunProxyClient, id_: object) -> bytes:
    """The line that answers; others are passed over."""
    mark = json.dumps(id_).encode()
    while True:
        line = client.stdout.readline()
        assert line, "the server has ended"
        if b'"id":' + mark in line or b'"id": ' + mark in line:
            return line


def a_call(client: RunProxyClient, line: bytes) -> float:
    begin = time.perf_counter()
    client.say(line)
    answer_to(client, "c")
    return (time.perf_counter() - begin) * 1e6


def test_a_call_and_memory(sizes: Sizes) -> None:
    rounds = sizes.pick(test=1_000, check=3_000, soak=10_000)
    line = request("c", "tools/call", {"name": "echo", "arguments": {"message": "hi"}})
    with ExitStack() as stack:
        clients = ready(stack, npm("@modelcontextprotocol/server-everything")())
        for client in clients.values():
            a_call(client, line)
        calls = {name: (lambda it=client: a_call(it, line)) for name, client in clients.items()}
        took = {name: statistics.median(all_) for name, all_ in interleaved(rounds, calls).items()}
        held = memory(clients[RUN].process.pid)
    added = took[RUN] - took[ALONE]
    table(
        "A call of server-everything's echo",
        ("", "median us", "added us", "RSS MB", "PSS MB"),
        [(ALONE, took[ALONE], "", "", ""), (RUN, took[RUN], added, held.rss_mb, held.pss_mb)],
    )


def a_call_with_place(client: RunProxyClient, line: bytes) -> float:
    """Measure a call of a client that is asked first where its session works."""
    begin = time.perf_counter()
    client.say(line)
    while (message := json.loads(client.stdout.readline())).get("id") != "c":
        if message.get("method") == "roots/list":
            client.tell(message["id"])
    return (time.perf_counter() - begin) * 1e6


def a_call_of_2026(client: RunProxyClient) -> float:
    """Measure a call of a client that sends it again with the answer."""
    more = {"_meta": {**META_2026, CAPABILITIES: {"roots": {}}}}
    begin = time.perf_counter()
    client.say(request("a", "tools/call", {"name": "echo", "arguments": {}, **more}))
    asked = json.loads(answer_to(client, "a"))["result"]
    more["requestState"] = asked["requestState"]
    more["inputResponses"] = {key: {"roots": []} for key in asked["inputRequests"]}
    client.say(request("c", "tools/call", {"name": "echo", "arguments": {}, **more}))
    answer_to(client, "c")
    return (time.perf_counter() - begin) * 1e6


def test_a_call_that_asks_where_the_session_works(sizes: Sizes) -> None:
    rounds = sizes.pick(test=1_000, check=3_000, soak=10_000)
    line = request("c", "tools/call", {"name": "echo", "arguments": {"message": "hi"}})
    with ExitStack() as stack:
        clients = ready(stack, [*SCRIPTED, "--deaf"])
        follows = stack.enter_context(process(command(*SCRIPTED, "--deaf")))
        follows.shake_hands_with_roots()
        latest = stack.enter_context(process(command(*SCRIPTED, "--deaf")))
        calls: dict[str, Callable[[], float]] = {
            ALONE: partial(a_call, clients[ALONE], line),
            RUN: partial(a_call, clients[RUN], line),
            "asked before the call": partial(a_call_with_place, follows, line),
            "asked by the first answer": partial(a_call_of_2026, latest),
        }
        took = {name: statistics.median(all_) for name, all_ in interleaved(rounds, calls).items()}
    table(
        "A call of a client that is asked where its session works",
        ("", "median us", "added to rootsd run"),
        [(name, us, us - took[RUN] if name != ALONE else "") for name, us in took.items()],
    )


def test_a_large_result(sizes: Sizes) -> None:
    rounds = sizes.pick(test=15, check=30, soak=100)
    line = request("c", "tools/call", {"name": "big", "arguments": BULK})
    with ExitStack() as stack:
        clients = ready(stack, [*SCRIPTED, "--deaf"])
        calls = {name: (lambda it=client: a_call(it, line)) for name, client in clients.items()}
        took = {name: statistics.median(all_) for name, all_ in interleaved(rounds, calls).items()}
    table(
        f"A result of {BULK / 1e6:.0f} MB",
        ("", "median ms", "against alone"),
        [(name, us / 1e3, f"{us / took[ALONE]:.2f} x") for name, us in took.items()],
    )


def many(client: RunProxyClient) -> float:
    """Milliseconds until so many calls are answered that were all made at once."""
    lines = b"".join(
        request(f"m{n}", "tools/call", {"name": "echo", "arguments": {"message": str(n)}})
        for n in range(FLIGHT)
    )
    begin = time.perf_counter()
    writer = threading.Thread(target=client.say, args=(lines,))
    writer.start()
    seen = {client.answer()["id"] for _ in range(FLIGHT)}
    writer.join()
    assert len(seen) == FLIGHT
    return (time.perf_counter() - begin) * 1e3


def test_a_thousand_calls_in_flight(sizes: Sizes) -> None:
    rounds = sizes.pick(test=5, check=15, soak=50)
    with ExitStack() as stack:
        clients = ready(stack, npm("@modelcontextprotocol/server-everything")())
        for client in clients.values():
            a_call(
                client, request("c", "tools/call", {"name": "echo", "arguments": {"message": ""}})
            )
        calls = {name: (lambda it=client: many(it)) for name, client in clients.items()}
        took = {name: statistics.median(all_) for name, all_ in interleaved(rounds, calls).items()}
    table(
        f"{FLIGHT} calls in flight",
        ("", "median ms", "against alone"),
        [(name, ms, f"{ms / took[ALONE]:.2f} x") for name, ms in took.items()],
    )


def a_start(words: list[str]) -> float:
    begin = time.perf_counter()
    with process(words) as client:
        client.say(request("c", "initialize", INITIALIZE))
        answer_to(client, "c")
        return (time.perf_counter() - begin) * 1e3


def test_start_to_first_answer(sizes: Sizes) -> None:
    rounds = sizes.pick(test=10, check=30, soak=60)
    starts = {
        name: (lambda it=words: a_start(it))
        for name, words in commands(npm("@modelcontextprotocol/server-everything")()).items()
    }
    took = {name: statistics.median(all_) for name, all_ in interleaved(rounds, starts).items()}
    table(
        "Start to first answer of server-everything",
        ("", "median ms", "added ms"),
        [(ALONE, took[ALONE], ""), (RUN, took[RUN], took[RUN] - took[ALONE])],
    )


def a_first_call(words: list[str]) -> float:
    """Milliseconds from the start to the answer to a call right after the handshake."""
    begin = time.perf_counter()
    with process(words) as client:
        complete_handshake(client)
        client.say(request("c", "tools/call", {"name": "echo", "arguments": {}}))
        answer_to(client, "c")
        return (time.perf_counter() - begin) * 1e3


def test_first_call_of_an_unknown_server(sizes: Sizes) -> None:
    rounds = sizes.pick(test=10, check=30, soak=60)
    servers = {"asks for roots": [*SCRIPTED], "never asks": [*SCRIPTED, "--deaf"]}
    starts = {
        f"{name}, {what}": (lambda it=words: a_first_call(it))
        for what, server in servers.items()
        for name, words in commands(server).items()
    }
    took = {name: statistics.median(all_) for name, all_ in interleaved(rounds, starts).items()}
    table(
        "Start to the first call's answer of a server that rootsd does not know",
        ("", "median ms", "added ms"),
        [
            (what, took[f"{RUN}, {what}"], took[f"{RUN}, {what}"] - took[f"{ALONE}, {what}"])
            for what in servers
        ],
    )
