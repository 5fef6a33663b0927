"""`request_root` proposes a folder, and its result reports roots only."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from rootsd.core.errors import Busy
from rootsd.mcp.connection import PeerLimits
from rootsd.mcp.views import WaitLimits
from support.bridges import META_2026
from support.mcp_harness import FakeSource, Peer, connected, root

API, WEB = root("/src/api"), root("/src/web")
AT_ONCE = PeerLimits(wait_limits=WaitLimits(default_s=0))
FOR_EVER = PeerLimits(wait_limits=WaitLimits(default_s=3600))


def request(path: str, **more: object) -> dict[str, Any]:
    return {"name": "request_root", "arguments": {"path": path, "reason": "to fix it", **more}}


async def ask(peer: Peer, path: str, **more: object) -> dict[str, Any]:
    result: dict[str, Any] = (await peer.ask_2026("tools/call", request(path, **more)))["result"]
    return result


async def test_a_request_reaches_the_user_with_client_name_and_escaped_reason() -> None:
    source = FakeSource(API)
    source.links[b"/link"] = b"/src/web"
    async with connected(source, limits=AT_ONCE) as peer:
        await peer.shake_hands()
        result = await ask(peer, "/link/x/..", reason="look\x1b[2J " + "a" * 500)
    assert result["structuredContent"]["approved"] is False
    [(path, asker, reason)] = source.requests
    assert (path, asker) == (b"/src/web", "a test")
    assert reason.startswith("look\\u{1b}")
    assert len(reason) == 200


async def test_a_folder_in_an_approved_root_needs_no_request() -> None:
    source = FakeSource(API)
    async with connected(source, limits=FOR_EVER) as peer:
        found = (await ask(peer, "/src/api/lib"))["structuredContent"]
    assert (found["approved"], found["root"]["name"]) == (True, "api")
    assert source.requests == []


async def test_the_waiting_call_is_answered_by_the_approval() -> None:
    source = FakeSource(API)
    async with connected(source, limits=FOR_EVER) as peer:
        await peer.say("tools/call", {**request("/src/web/x"), "_meta": META_2026}, id_=7)
        await anyio.wait_all_tasks_blocked()
        source.publish(root("/src/other"))
        await anyio.wait_all_tasks_blocked()
        source.publish(API, WEB)
        answer = await peer.hear()
    assert answer["id"] == 7
    assert answer["result"]["structuredContent"]["root"]["name"] == "web"
    assert answer["result"]["structuredContent"]["revision"] == source.revision


async def test_the_waiting_call_is_answered_by_its_denial_and_not_by_an_earlier_one() -> None:
    source = FakeSource(API)
    async with connected(source, limits=FOR_EVER) as peer:
        await peer.say("tools/call", {**request("/src/web"), "_meta": META_2026}, id_=7)
        await anyio.wait_all_tasks_blocked()
        source.handle.deny()
        answer = (await peer.hear())["result"]["structuredContent"]
        assert (answer["approved"], answer["denied"]) == (False, True)
        assert "said no" in answer["advice"]
        again = await ask(peer, "/src/web", wait_seconds=0)
        assert again["structuredContent"]["denied"] is False


async def test_an_approval_that_comes_with_a_denial_wins() -> None:
    source = FakeSource(API)
    async with connected(source, limits=FOR_EVER) as peer:
        await peer.say("tools/call", {**request("/src/web/lib"), "_meta": META_2026}, id_=7)
        await anyio.wait_all_tasks_blocked()
        source.handle.deny()
        source.publish(WEB)
        answer = (await peer.hear())["result"]["structuredContent"]
    assert (answer["approved"], answer["denied"], answer["root"]["name"]) == (True, False, "web")


async def test_a_failing_source_ends_the_waiting_call_with_its_error() -> None:
    source = FakeSource(API)
    async with connected(source, limits=FOR_EVER) as peer:
        await peer.say("tools/call", {**request("/src/web"), "_meta": META_2026}, id_=7)
        await anyio.wait_all_tasks_blocked()
        source.error = Busy("the disk hangs", "rootsd status")
        source.publish(API)
        assert (await peer.hear())["error"]["message"] == "the disk hangs"


async def test_an_approval_outside_the_scope_is_not_reported() -> None:
    source = FakeSource(API)
    async with connected(source, limits=AT_ONCE) as peer:
        await peer.ask("rootsd/hello", {"version": 1, "scope": {"names": ["api"]}})
        source.publish(API, WEB)
        assert (await ask(peer, "/src/web"))["structuredContent"]["approved"] is False


async def test_every_folder_outside_the_roots_gets_the_same_answer() -> None:
    source = FakeSource(API)
    async with connected(source, limits=AT_ONCE) as peer:
        answers = [await ask(peer, path) for path in ("/src/web", "/etc/shadow", "/no/such", "/")]
    assert [answer == answers[0] for answer in answers] == [True] * 4


async def test_progress_is_sent_to_a_client_that_asked_for_it() -> None:
    source = FakeSource(API)
    limits = PeerLimits(wait_limits=WaitLimits(default_s=3600, progress_s=0.01))
    meta = {**META_2026, "progressToken": "t"}
    async with connected(source, limits=limits) as peer:
        await peer.say("tools/call", {**request("/src/web"), "_meta": meta}, id_=7)
        told = [await peer.hear() for _ in range(2)]
        assert [each["method"] for each in told] == ["notifications/progress"] * 2
        assert told[0]["params"]["progress"] < told[1]["params"]["progress"] < 3600
        assert (told[0]["params"]["total"], told[0]["params"]["progressToken"]) == (3600, "t")
        source.publish(WEB)
        while "result" not in (answer := await peer.hear()):
            pass
        assert answer["result"]["structuredContent"]["approved"] is True


async def test_the_call_ends_when_its_time_is_over() -> None:
    limits = PeerLimits(wait_limits=WaitLimits(default_s=0.02, progress_s=0.01))
    async with connected(FakeSource(API), limits=limits) as peer:
        assert (await ask(peer, "/src/web"))["structuredContent"]["approved"] is False


async def test_a_canceled_call_makes_room_for_another() -> None:
    source = FakeSource(API)
    limits = PeerLimits(wait_limits=WaitLimits(default_s=3600, max_calls=1))
    async with connected(source, limits=limits) as peer:
        await peer.say("tools/call", {**request("/src/a"), "_meta": META_2026}, id_=2)
        await anyio.wait_all_tasks_blocked()
        assert (await ask(peer, "/src/b"))["structuredContent"]["approved"] is False
        await peer.say("notifications/cancelled", {"requestId": 2})
        await anyio.wait_all_tasks_blocked()
        await peer.say("tools/call", {**request("/src/web"), "_meta": META_2026}, id_=3)
        await anyio.wait_all_tasks_blocked()
        source.publish(WEB)
        assert (await peer.hear())["id"] == 3


async def test_too_many_requests_on_a_connection_are_refused_for_any_path() -> None:
    source = FakeSource(API)
    async with connected(source, limits=AT_ONCE) as peer, connected(source) as neighbour:
        paths = ["/src/a", "/src/api", "/etc", "/src/a", "/no/such"]
        for path in paths:
            assert (await ask(peer, path))["isError"] is False
        for path in ("/src/new", "/src/api"):
            refusal = await ask(peer, path)
            assert refusal["isError"] is True
            assert "try again in 12 seconds" in refusal["content"][0]["text"]
        assert (await ask(neighbour, "/src/api"))["isError"] is False


async def test_too_many_requests_for_the_user_are_refused() -> None:
    source = FakeSource(API)
    source.busy = Busy("too many requests for folders; try again in 3 seconds")
    async with connected(source, limits=FOR_EVER) as peer:
        refusal = await ask(peer, "/src/web")
    assert refusal["isError"] is True
    assert "in 3 seconds" in refusal["content"][0]["text"]


@pytest.mark.parametrize(
    "sloppy",
    [
        {"path": "file:///src/web", "wait_seconds": 0.0},
        {"path": "/src/web", "wait_seconds": -5},
        {"path": "/src/web", "wait_seconds": "0", "approve": True},
        {"folder": "/src/web", "path": None, "wait_seconds": ""},
    ],
)
async def test_common_mistakes_in_a_call_are_accepted(sloppy: dict[str, object]) -> None:
    source = FakeSource(API)
    async with connected(source, limits=AT_ONCE) as peer:
        params = {"name": "request_root", "arguments": {"reason": "to fix it", **sloppy}}
        result = (await peer.ask_2026("tools/call", params))["result"]
    assert result["isError"] is False
    assert source.requests == [(b"/src/web", "a client without a name", "to fix it")]


async def test_a_wait_above_the_limit_becomes_the_limit() -> None:
    source = FakeSource(API)
    limits = PeerLimits(wait_limits=WaitLimits(progress_s=0.01))
    meta = {**META_2026, "progressToken": "t"}
    async with connected(source, limits=limits) as peer:
        params = {**request("/src/web", wait_seconds=10**6), "_meta": meta}
        await peer.say("tools/call", params, id_=7)
        assert (await peer.hear())["params"]["total"] == 120
