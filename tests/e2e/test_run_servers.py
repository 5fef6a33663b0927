"""`rootsd run` with real servers, a real daemon, and clients of many kinds.

Each server is asked for files in an approved folder and in another one. A folder is denied while
it is in use, and the very next call on it must fail.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
    TextContent,
)

from rootsd.core.access import Access
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from support.bridges import INITIALIZE, notice, request
from support.confirmed_orders import call_confirmed
from support.person import Person, Resident
from support.real_servers import LISTING, SCRIPTED_SERVER, SERVERS, RootLimit, Server, said
from support.run_proxy import command, started
from support.sizes import Sizes

HANG_GUARD_S = 120
NARROW = ("--client-roots", "narrow")
AUTO = ("--client-roots", "auto")

pytestmark = [
    pytest.mark.needs("npm"),
    # The SDK deprecates parts that its own legacy mode still uses.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    person = Resident(tmp_path_factory.mktemp("house"))
    for name in ("alpha", "beta", "gamma", "delta"):
        folder = person.clone(name)
        (folder / ".obsidian").mkdir()  # this makes it an Obsidian vault
        (folder / "NOTE.md").write_text(f"I am {name}\n")
    person.rootsd("up", str(person.parent))
    yield person
    person.run("down")


@pytest.fixture
def person(house: Resident, monkeypatch: pytest.MonkeyPatch) -> Resident:
    """Return a person who approved alpha and beta, and neither gamma nor delta."""
    monkeypatch.setenv("ROOTSD_DIR", house.environment()["ROOTSD_DIR"])  # `decide` looks there
    call_confirmed(DecideRequest(DecisionVerb.FORGET, "/", ("gamma", "delta")))
    call_confirmed(DecideRequest(DecisionVerb.APPROVE, "/", ("alpha", "beta")))
    return house


class Callbacks:
    """A client's answers when it is asked for roots."""

    def __init__(self, own: Path) -> None:
        self._own = own

    async def empty(self, _: object) -> ListRootsResult:
        return ListRootsResult(roots=[])

    async def refusing(self, _: object) -> ErrorData:
        return ErrorData(code=-32601, message="Roots not supported")

    async def silent(self, _: object) -> ListRootsResult:
        await anyio.Event().wait()
        raise AssertionError("it never answers")

    async def owning(self, _: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate({"uri": self._own.as_uri()})])


CLIENTS = ("without", "empty", "refusing", "silent", "owning")


@asynccontextmanager
async def client_of(
    person: Person,
    words: list[str],
    *,
    flags: tuple[str, ...] = (),
    kind: str = "without",
    mode: str = "legacy",
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[Client]:
    """Yield a client of this kind, whose own folder is alpha."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rootsd", "run", *flags, "--", *words],
        env={name: person.environment()[name] for name in ("HOME", "PATH", "ROOTSD_DIR")},
        cwd="/",
    )
    if kind != "without":
        more["list_roots_callback"] = getattr(Callbacks(person.parent / "alpha"), kind)
    async with Client(parameters, mode=mode, **more) as client:
        yield client


async def decide(verb: DecisionVerb, name: str, access: Access = Access.READ_WRITE) -> None:
    """Send an order as the command line does, without starting a process."""
    await to_thread.run_sync(call_confirmed, DecideRequest(verb, "/", (name,), access=access))


async def until_open(server: Server, client: Client, folder: Path) -> None:
    """Ask until the folder is open. An addition may take a moment."""
    with anyio.fail_after(HANG_GUARD_S):
        while not await server.is_open(client, folder):
            pass


async def use(person: Person, server: Server, kind: str) -> None:
    """Check that an approved folder is open at the first call, and that another one never is."""
    alpha, beta, gamma = (person.parent / name for name in ("alpha", "beta", "gamma"))
    only_alpha = server.takes is RootLimit.ONE or kind == "owning"
    own = {"owning": AUTO, "silent": ("--stay",)}.get(kind, ())
    flags = (*server.flags, *own)
    async with client_of(person, server.command(), flags=flags, kind=kind) as client:
        assert await server.is_open(client, alpha), "the first call of all"
        assert await server.is_open(client, beta) is not only_alpha
        assert not await server.is_open(client, gamma)
        await decide(DecisionVerb.DENY, "alpha")
        assert not await server.is_open(client, alpha), "the very next call"
        await decide(DecisionVerb.APPROVE, "alpha")
        await until_open(server, client, alpha)
        assert not await server.is_open(client, gamma)


# Each kind of client once, with servers of each kind of root limit and restart that start soon.
FEW = (
    ("server-filesystem", "without"),
    ("server-everything", "empty"),
    ("mcp-obsidian", "refusing"),
    ("mcp-obsidian", "silent"),
    ("agent-infra filesystem", "owning"),
)
ALL = tuple((name, kind) for name in SERVERS for kind in CLIENTS)


async def test_only_approved_folders_reach_the_servers(person: Person, sizes: Sizes) -> None:
    for name, kind in sizes.pick(test=FEW, check=ALL, soak=ALL):
        print(f"{name}, {kind}")  # noqa: T201 - the last one is the one that fails
        with anyio.fail_after(HANG_GUARD_S):
            await use(person, SERVERS[name], kind)


def test_the_small_size_has_all_kinds_of_clients_and_servers() -> None:
    servers = [SERVERS[name] for name, _ in FEW]
    assert [kind for _, kind in FEW] == list(CLIENTS)
    assert {(each.takes, each.restarts) for each in servers} == {
        (each.takes, each.restarts) for each in SERVERS.values()
    }


def test_a_first_call_sent_with_the_handshake_works(person: Person, sizes: Sizes) -> None:
    server, folder = SERVERS["server-filesystem"], person.parent / "beta"
    call = {"name": "list_directory", "arguments": {"path": str(folder)}}
    for _ in range(sizes.pick(test=1, check=4, soak=12)):
        with started(command(*server.command())) as client:
            client.say(
                request("i", "initialize", INITIALIZE),
                notice("notifications/initialized"),
                request(1, "tools/call", call),
            )
            assert client.answer()["id"] == "i"
            assert "NOTE.md" in json.dumps(client.answer()["result"])


async def test_control_without_the_readiness_gate_the_first_call_fails(person: Person) -> None:
    """This is how the server treats a client with roots and without the proxy."""
    server, folder = SERVERS["server-filesystem"], person.parent / "beta"
    command, *words = server.command()
    own: Any = Callbacks(folder).owning
    parameters = StdioServerParameters(command=command, args=words)
    is_open = True
    with anyio.fail_after(HANG_GUARD_S):
        while is_open:
            async with Client(parameters, mode="legacy", list_roots_callback=own) as client:
                is_open = await server.is_open(client, folder)


def listing_server() -> psutil.Process:
    """Return the process of the server that asks for roots during calls."""
    found = []
    for each in psutil.Process().children(recursive=True):
        try:
            words = each.cmdline()
        except psutil.NoSuchProcess:
            continue  # a process of an earlier test: it has ended, or is a zombie
        if words[-1:] == [str(LISTING)] and "run" not in words:
            found.append(each)
    (server,) = found
    return server


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_server_of_the_sdk_has_the_current_roots_and_all_answers_and_is_never_restarted(
    person: Person, mode: str, sizes: Sizes
) -> None:
    """The server sends elicitation, sampling, and roots requests in one call; in 2026-07-28, in
    one result.
    """
    asked: list[object] = []

    async def elicited(_: object, params: Any) -> ElicitResult:  # noqa: ANN401
        asked.append(params.message)
        return ElicitResult(action="accept", content={"sure": True})

    async def sampled(_: object, params: Any) -> CreateMessageResult:  # noqa: ANN401
        asked.append((params.messages[0].content.text, params.max_tokens))
        text = TextContent(text="well")
        return CreateMessageResult(role="assistant", content=text, model="m")

    callbacks: Any = {"elicitation_callback": elicited, "sampling_callback": sampled}
    listing = SERVERS["SDK server with ListRoots"]
    roots = " ".join((person.parent / name).as_uri() for name in ("alpha", "beta"))
    took = []
    with anyio.fail_after(HANG_GUARD_S):
        async with client_of(person, listing.command(), mode=mode, **callbacks) as client:
            for times in (1, 2):
                assert await said(client, "ask_all") == f"True well {roots}"
                assert asked.count("sure?") == asked.count(("what do you think?", 77)) == times
                assert len(asked) == 2 * times
            server = listing_server()
            for number in range(sizes.pick(test=4, check=100, soak=100)):
                verb = DecisionVerb.APPROVE if number % 2 else DecisionVerb.DENY
                await decide(verb, "alpha")
                begin = time.perf_counter()
                told = await said(client, "show_roots") or ""
                took.append(time.perf_counter() - begin)
                assert ("/alpha" in told) is (verb is DecisionVerb.APPROVE)
                assert "/beta" in told
            assert listing_server() == server
    print(f"next call: median {statistics.median(took) * 1e3:.1f} ms")  # noqa: T201
    assert statistics.median(took) <= 0.05


async def test_a_server_that_asks_once_reads_no_denied_folder_and_sees_each_approval(
    person: Person,
) -> None:
    """After one call, it may still be one that asks in each call."""
    alpha, beta = (person.parent / name for name in ("alpha", "beta"))
    with anyio.fail_after(HANG_GUARD_S):
        async with client_of(person, [*SCRIPTED_SERVER.command(), "--once"]) as client:
            assert await SCRIPTED_SERVER.is_open(client, beta)
            before = await process_of(client)
            await decide(DecisionVerb.DENY, "beta")
            assert not await SCRIPTED_SERVER.is_open(client, beta), "the very next call"
            after = await process_of(client)
            assert after != before
            assert await SCRIPTED_SERVER.is_open(client, alpha)
            assert await process_of(client) == after, "one change, one restart"
            await decide(DecisionVerb.APPROVE, "beta")
            await until_open(SCRIPTED_SERVER, client, beta)


async def process_of(client: Client) -> str:
    """Return the process of the scripted server."""
    return await said(client, "process") or ""


async def test_read_only_roots_are_withheld_from_a_server_that_could_write(
    person: Person,
) -> None:
    server = SCRIPTED_SERVER
    await decide(DecisionVerb.APPROVE, "gamma", Access.READ)
    with anyio.fail_after(HANG_GUARD_S):
        for flags, is_open in (((), False), (("--advisory-access",), True)):
            async with client_of(person, server.command(), flags=flags) as client:
                assert await server.is_open(client, person.parent / "alpha")
                assert await server.is_open(client, person.parent / "gamma") is is_open


async def test_a_clients_unapproved_folder_becomes_a_proposal(
    person: Person,
) -> None:
    server = SCRIPTED_SERVER
    folder = person.parent / "delta"
    own: Any = Callbacks(folder).owning
    await to_thread.run_sync(person.wait_until_listed, "delta", "pending")
    with anyio.fail_after(HANG_GUARD_S):
        async with client_of(
            person, server.command(), flags=NARROW, list_roots_callback=own
        ) as client:
            assert not await server.is_open(client, folder)
            assert not await server.is_open(client, person.parent / "alpha"), "it is not theirs"
            (waiting,) = [i for i in person.items("pending") if i["name"] == "delta"]
            assert '(its own name: "run: scripted_server.py") asks for it' in str(waiting["note"])
            await decide(DecisionVerb.APPROVE, "delta")
            await until_open(server, client, folder)


async def test_the_client_does_not_notice_a_killed_daemon(
    person: Person,
) -> None:
    server = SCRIPTED_SERVER
    with anyio.fail_after(HANG_GUARD_S):
        async with client_of(person, server.command()) as client:
            assert await server.is_open(client, person.parent / "alpha")
            os.kill(person.daemon_pid(), 9)
            assert await server.is_open(client, person.parent / "alpha")
            await to_thread.run_sync(person.rootsd, "up")
            await decide(DecisionVerb.DENY, "alpha")
            assert not await server.is_open(client, person.parent / "alpha")


async def test_sessions_lists_the_server_its_scope_and_its_roots(person: Person) -> None:
    """Of the roots in its scope, the server is told those that its client has open."""
    server = SCRIPTED_SERVER
    flags = ("--only", "alpha", "--only", "beta", *NARROW)
    with anyio.fail_after(HANG_GUARD_S):
        async with client_of(person, server.command(), flags=flags, kind="owning") as client:
            assert await server.is_open(client, person.parent / "alpha")
            (session,) = (each for each in person.items("sessions") if each["scope"])
    assert session["client"] == "run: scripted_server.py"
    assert session["scope"] == ["alpha", "beta"]
    assert session["given"][-1]["roots"] == 2
    assert session["told"] == {"roots": 1, "names": ["alpha"]}
