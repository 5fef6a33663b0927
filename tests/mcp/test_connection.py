"""One connection from its first byte to its last: all revisions, limits, notifications."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import TextResourceContents

from rootsd.core.model import PublishedRoot
from rootsd.mcp.connection import DisconnectReason, PeerLimits, serve_session
from support.bridges import META_2026
from support.list_roots_output import listed
from support.mcp_harness import (
    HANG_GUARD_S,
    FakeSource,
    Peer,
    byte_pipe,
    connected,
    no_wait,
    root,
    transport,
)
from support.recorded_session import RecordedObserver

API, WEB = root("/src/api"), root("/src/web")


@asynccontextmanager
async def client(
    source: FakeSource, mode: str, told: MessageHandlerFnT | None = None
) -> AsyncIterator[Client]:
    async with connected(source) as peer:
        with anyio.fail_after(HANG_GUARD_S):
            async with Client(transport(peer.stream), mode=mode, message_handler=told) as made:
                yield made


@pytest.mark.parametrize(
    ("mode", "version"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
async def test_the_sdks_client_reads_tools_and_resources_in_every_mode(
    mode: str, version: str
) -> None:
    async with client(FakeSource(API), mode) as made:
        assert made.protocol_version == version
        assert [tool.name for tool in (await made.list_tools()).tools] == [
            "list_roots",
            "resolve_root",
            "request_root",
        ]
        assert listed(await made.call_tool("list_roots", {})) == {"api": "/src/api"}
        uris = [resource.uri for resource in (await made.list_resources()).resources]
        assert uris == ["roots://approved", "roots://root/api"]
        contents = (await made.read_resource("roots://approved")).contents[0]
        assert isinstance(contents, TextResourceContents)
        assert json.loads(contents.text) == {
            "roots": [
                {
                    "uri": "file:///src/api",
                    "name": "api",
                    "_meta": {
                        "rootsd/kind": "git",
                        "rootsd/access": "read-write",
                        "rootsd/tags": [],
                    },
                }
            ],
            "revision": 1,
        }


async def test_both_kinds_of_subscribers_are_notified_of_one_change() -> None:
    source = FakeSource(API)
    told: list[str] = []
    changed = anyio.Event()

    async def take(message: object) -> None:
        told.append(type(message).__name__)
        if "ResourceUpdatedNotification" in told:
            changed.set()

    async with (
        client(source, "legacy", take) as old,
        client(source, "2026-07-28") as new,
    ):
        with pytest.warns(
            MCPDeprecationWarning
        ):  # removed in 2026-07-28, and this revision is older
            await old.session.subscribe_resource("roots://approved")
        async with new.listen(resource_subscriptions=["roots://approved"]) as stream:
            source.publish(API, WEB)
            assert await anext(aiter(stream)) == ResourceUpdated(uri="roots://approved")
        await changed.wait()
    assert told == ["ResourceListChangedNotification", "ResourceUpdatedNotification"]


async def test_a_client_may_probe_with_discover_and_then_initialize() -> None:
    call = {"name": "list_roots", "arguments": {}}
    async with connected(FakeSource(API)) as peer:
        found = await peer.ask_2026("server/discover", id_="probe")
        assert found["result"]["supportedVersions"] == ["2026-07-28"]
        assert (await peer.shake_hands())["result"]["protocolVersion"] == "2025-11-25"
        assert "resultType" not in (await peer.ask("tools/call", call))["result"]
        modern = await peer.ask_2026("tools/call", call, id_=2)
        assert modern["result"]["resultType"] == "complete"
        assert (await peer.ask("ping", id_=3))["result"] == {}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_of_the_handshake_gets_its_own_version(version: str) -> None:
    async with connected(FakeSource(API)) as peer:
        answer = await peer.shake_hands(version)
        assert answer["result"]["protocolVersion"] == version
        assert answer["result"]["capabilities"]["resources"] == {
            "subscribe": True,
            "listChanged": True,
        }
        assert (await peer.ask("tools/list"))["result"]["tools"][0]["name"] == "list_roots"


@pytest.mark.parametrize(
    ("method", "params", "caching"),
    [
        ("resources/list", {}, (0, "private")),
        ("resources/read", {"uri": "roots://approved"}, (0, "private")),
        ("resources/read", {"uri": "roots://root/api"}, (0, "private")),
        ("resources/templates/list", {}, (60_000, "public")),
        ("tools/list", {}, (60_000, "public")),
        ("server/discover", {}, (60_000, "public")),
    ],
)
async def test_2026_results_forbid_caching_of_roots_and_allow_it_for_the_rest(
    method: str, params: dict[str, str], caching: tuple[int, str]
) -> None:
    async with connected(FakeSource(API)) as peer:
        result = (await peer.ask_2026(method, params))["result"]
        assert (result["ttlMs"], result["cacheScope"]) == caching
        await peer.shake_hands()
        if method != "server/discover":
            assert "ttlMs" not in (await peer.ask(method, params))["result"]


async def test_a_listening_stream_is_closed_with_its_result_when_the_client_half_closes() -> None:
    async with connected(FakeSource(API)) as peer:
        wanted = {"notifications": {"resourcesListChanged": True}}
        ack = await peer.ask_2026("subscriptions/listen", wanted, id_="s")
        assert ack["method"] == "notifications/subscriptions/acknowledged"
        await peer.stream.send_eof()
        assert (await peer.hear())["id"] == "s"
        assert await peer.hears_end() is DisconnectReason.LEFT


async def test_requests_before_the_end_of_input_are_answered_after_it() -> None:
    async with connected(FakeSource(API)) as peer:
        await peer.shake_hands()
        await peer.say("tools/call", {"name": "list_roots"}, id_=7)
        await peer.stream.send(b'{"jsonrpc":"2.0","id":8,"method":"ping"}')  # no newline
        await peer.stream.send_eof()
        assert {(await peer.hear())["id"], (await peer.hear())["id"]} == {7, 8}
        assert await peer.hears_end() is DisconnectReason.LEFT


async def test_no_notification_is_sent_before_the_handshake_is_over() -> None:
    source = FakeSource(API)
    async with connected(source) as peer:
        await peer.say("notifications/initialized")  # ignored
        await peer.ask_2026("server/discover")
        source.publish(API, WEB)
        assert (await peer.ask("ping"))["id"] == 1


async def test_within_the_interval_additions_wait_and_what_takes_roots_away_does_not() -> None:
    source = FakeSource()
    async with connected(source, limits=PeerLimits(notification_interval_s=3600)) as peer:

        async def is_notified(*roots: PublishedRoot) -> None:
            source.publish(*roots)
            assert (await peer.hear())["method"] == "notifications/roots/list_changed"
            await anyio.wait_all_tasks_blocked()

        async def is_delayed(*roots: PublishedRoot) -> None:
            source.publish(*roots)
            await anyio.wait_all_tasks_blocked()

        await peer.ask("roots/list")
        await is_notified(API)
        await is_delayed(API, WEB)
        assert len((await peer.ask("roots/list"))["result"]["roots"]) == 2
        await is_notified(API)  # a root that came and went
        await is_delayed(API, WEB)
        await is_notified(WEB)


async def test_a_delayed_addition_is_notified_after_the_interval() -> None:
    source = FakeSource()
    async with connected(source, limits=PeerLimits(notification_interval_s=0.01)) as peer:
        await peer.ask("roots/list")
        for roots in ((API,), (API, WEB)):
            source.publish(*roots)
            await anyio.wait_all_tasks_blocked()
        for _ in range(2):
            assert (await peer.hear())["method"] == "notifications/roots/list_changed"


async def test_each_line_waits_for_its_turn() -> None:
    turns = anyio.Semaphore(0)
    async with connected(FakeSource(), turn=turns.acquire) as peer:
        ping = b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}'
        await peer.write(ping, ping)
        await anyio.wait_all_tasks_blocked()
        assert not peer.is_active
        turns.release()
        await peer.hear()
        await anyio.wait_all_tasks_blocked()
        assert turns.statistics().tasks_waiting == 1
        turns.release()
        await peer.hear()
        turns.release()


async def test_a_line_above_the_limit_ends_the_connection_with_an_error() -> None:
    async with connected(FakeSource(), limits=PeerLimits(max_line=100)) as peer:
        await peer.write(b"x" * 101)
        assert (await peer.hear())["error"]["code"] == -32600
        assert await peer.hears_end() is DisconnectReason.LINE_TOO_LONG


async def test_an_answer_may_be_longer_than_a_request() -> None:
    many = [root(f"/src/project-{number:04}") for number in range(2000)]
    async with connected(FakeSource(*many)) as peer:
        assert len((await peer.ask("roots/list"))["result"]["roots"]) == 2000


async def test_a_silent_client_is_disconnected() -> None:
    async with connected(FakeSource(), limits=PeerLimits(first_line_s=0.01)) as peer:
        assert await peer.hears_end() is DisconnectReason.SILENT


async def test_bytes_without_a_line_do_not_extend_the_time_to_the_first_line() -> None:
    async with connected(FakeSource(), limits=PeerLimits(first_line_s=0.1)) as peer:
        with anyio.fail_after(HANG_GUARD_S):
            while peer.end is None:
                with contextlib.suppress(anyio.BrokenResourceError):
                    await peer.stream.send(b" ")
                await anyio.lowlevel.checkpoint()
        assert peer.end is DisconnectReason.SILENT


async def test_a_client_may_be_silent_after_its_first_line() -> None:
    async with connected(FakeSource(), limits=PeerLimits(first_line_s=0.5)) as peer:
        await peer.stream.send(b" ")
        assert not peer.is_active
        await peer.ask("ping")
        assert peer.is_active
        with anyio.move_on_after(0.7):
            await peer.hears_end()
        assert (await peer.ask("ping"))["id"] == 1


async def test_a_client_that_never_reads_is_disconnected_and_others_are_not() -> None:
    source = FakeSource(*(root(f"/src/project-{number:04}") for number in range(1000)))
    limits = PeerLimits(stall_s=0.2)
    async with (
        connected(source, limits=limits, capacity=2) as deaf,
        connected(source, limits=limits) as neighbour,
    ):
        await deaf.say("roots/list", id_=1)
        assert len((await neighbour.ask("roots/list"))["result"]["roots"]) == 1000
        with anyio.fail_after(HANG_GUARD_S):
            while deaf.end is None:
                await neighbour.ask("ping")
        assert deaf.end is DisconnectReason.SLOW_READER


async def test_a_slow_client_that_makes_progress_gets_all_lines() -> None:
    source = FakeSource(*(root(f"/src/project-{number:04}") for number in range(1000)))
    limits = PeerLimits(stall_s=5, write_size=1024)
    async with connected(source, limits=limits, capacity=0) as peer:
        assert len((await peer.ask("roots/list"))["result"]["roots"]) == 1000


async def test_a_client_may_disconnect_while_it_is_answered() -> None:
    source = FakeSource(API)
    async with connected(source, capacity=0) as peer:
        await peer.say("roots/list", id_=1)
        await peer.stream.aclose()
    assert peer.end is DisconnectReason.LEFT


@pytest.mark.parametrize("era", ["handshake", "2026"])
async def test_requests_that_are_open_when_the_daemon_ends_get_no_answer(era: str) -> None:
    """A bridge repeats them at the next daemon, which an answer such as "connection closed" would
    prevent.
    """
    mine, theirs = byte_pipe()
    peer = Peer(mine)
    request = {"path": "/src/new", "reason": "to see", "wait_seconds": 120}
    params = {"name": "request_root", "arguments": request}
    async with anyio.create_task_group() as group:
        group.start_soon(
            partial(
                serve_session,
                theirs,
                FakeSource(API),
                observer=RecordedObserver(),
                mark_active=peer.mark_active,
                await_turn=no_wait,
            )
        )
        await peer.shake_hands()
        envelope = {"_meta": META_2026} if era == "2026" else {}
        await peer.say("tools/call", {**params, **envelope}, id_=7)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    with pytest.raises(anyio.EndOfStream):
        await peer.hear()
    await mine.aclose()


async def test_the_client_name_is_escaped_and_observed_once() -> None:
    async with connected(FakeSource()) as peer:
        for name in ("editor\x1b[2J", "another"):
            said = {"capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
            await peer.ask("initialize", {"protocolVersion": "2025-11-25", **said})
        assert peer.seen.names == ["editor\\u{1b}[2J"]
