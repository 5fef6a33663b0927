"""One control connection: lines in, answers out."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import UNIXSocketStream

from rootsd.control import server
from rootsd.control.dispatch import Dispatcher
from rootsd.control.guarded_connection import ChallengeNeeded
from rootsd.control.routes import GuardedCommand, RequestContext, plain_command
from rootsd.control.server import ERROR_CODE, Admit, WaitForTurn, serve_control
from rootsd.core.errors import AmbiguousReference, CallerRefused, UnknownProject
from rootsd.core.model import Actor, ActorKind
from rootsd.wire.daemon import StatusQuery, StopRequest
from rootsd.wire.decisions import DecideRequest
from rootsd.wire.guard import Challenge, LogQuery
from rootsd.wire.jsonrpc import LineReader
from rootsd.wire.projects import CheckQuery
from rootsd.wire.request import ControlRequest
from rootsd.wire.scans import ScanProgressItem, ScanRequest

HANG_GUARD_S = 60
ME = Actor(ActorKind.PERSON, "a test")


class FakeDispatcher(Dispatcher):
    """Records its requests, reports progress on a scan, and refuses to stop."""

    def __init__(self) -> None:
        self.asked: list[tuple[ControlRequest, Actor]] = []
        self.may_finish = anyio.Event()
        self.answers_out: list[ControlRequest] = []

    def finish(self, request: ControlRequest) -> None:
        self.answers_out.append(request)

    def guarded_command(self, request: ControlRequest) -> GuardedCommand | None:
        return plain_command("forget x") if isinstance(request, DecideRequest) else None

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        self.asked.append((request, call.actor))
        progress = call.progress
        if isinstance(request, StopRequest):
            raise UnknownProject("no such thing", "rootsd ls")
        if isinstance(request, CheckQuery):
            raise AmbiguousReference(
                "api fits several", typed="api", choices=("acme/api", "beta/api")
            )
        if isinstance(request, ScanRequest) and progress is not None:
            progress(ScanProgressItem(folders=1, projects=0, parent="/src"))
            progress(ScanProgressItem(folders=2, projects=1, parent="/src"))
            await self.may_finish.wait()
        return {"revision": 7}


async def admit(request: ControlRequest, typed: str | None) -> Actor:
    """Lets everybody in; of whoever asks for the log, a word is wanted."""
    if isinstance(request, LogQuery):
        if typed is None:
            raise ChallengeNeeded("confirm it", Challenge(terminal="pts/7"))
        if typed != "bada":
            raise CallerRefused("that is not the word", "rootsd status")
    return ME


class Caller:
    """The client's end: sends lines and reads answers."""

    def __init__(self, stream: UNIXSocketStream) -> None:
        self.stream = stream
        self._lines = LineReader(1 << 20)

    async def send(self, text: str) -> None:
        await self.stream.send(text.encode() + b"\n")

    async def call(self, method: str, **params: object) -> dict[str, Any]:
        await self.send(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        )
        return await self.next()

    async def next(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            while (line := self._lines.pop()) is None:
                self._lines.feed(await self.stream.receive())
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def connected(
    dispatcher: FakeDispatcher,
    turn: WaitForTurn = anyio.lowlevel.checkpoint,
    admit: Admit = admit,
) -> AsyncIterator[Caller]:
    ours, theirs = socket.socketpair()
    near = await UNIXSocketStream.from_socket(ours)
    far = await UNIXSocketStream.from_socket(theirs)
    async with anyio.create_task_group() as group, near, far:
        group.start_soon(serve_control, near, dispatcher, admit, turn)
        yield Caller(far)
        group.cancel_scope.cancel()


async def test_a_request_reaches_the_dispatcher_with_its_caller_and_is_answered() -> None:
    dispatcher = FakeDispatcher()
    async with connected(dispatcher) as caller:
        assert await caller.call("status") == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"revision": 7},
        }
    assert dispatcher.asked == [(StatusQuery(), ME)]
    assert dispatcher.answers_out == [StatusQuery()]


async def test_each_line_waits_for_its_turn() -> None:
    dispatcher, turns = FakeDispatcher(), anyio.Semaphore(0)
    async with connected(dispatcher, turns.acquire) as caller:
        status = '{"jsonrpc":"2.0","id":1,"method":"status"}'
        await caller.send(f"{status}\n{status}")
        for answered in (1, 2):
            await anyio.wait_all_tasks_blocked()
            assert len(dispatcher.asked) == answered - 1
            turns.release()
            await caller.next()


async def test_an_error_is_sent_with_what_helps_and_the_connection_stays_open() -> None:
    async with connected(FakeDispatcher()) as caller:
        assert (await caller.call("stop"))["error"] == {
            "code": ERROR_CODE,
            "message": "no such thing",
            "data": {"code": "nothing-matched", "remedy": "rootsd ls"},
        }
        ambiguous = await caller.call("check", path="/x")
        assert ambiguous["error"]["data"]["choices"] == ["acme/api", "beta/api"]
        assert (await caller.call("teleport"))["error"]["data"]["code"] == "usage"
        await caller.send("{not json")
        assert (await caller.next())["error"]["code"] == -32700
        assert (await caller.call("status"))["result"] == {"revision": 7}


async def test_an_order_with_unknown_fields_is_refused() -> None:
    dispatcher = FakeDispatcher()
    async with connected(dispatcher) as caller:
        order = {"verb": "forget", "cwd": "/", "refs": ["x"]}
        error = (await caller.call("decide", **order, gently=True, **{"\x1b": 1}))["error"]
        assert "older and does not know gently, \\u{1b} of" in error["message"]
        assert error["data"] == {"code": "usage", "remedy": "rootsd up"}
        assert dispatcher.asked == []
        assert (await caller.call("decide", **order, typed="a word"))["result"] == {"revision": 7}
        assert (await caller.call("status", later=True))["result"] == {"revision": 7}


async def test_an_endless_line_is_rejected_with_an_error() -> None:
    async with connected(FakeDispatcher()) as caller, anyio.create_task_group() as group:
        group.start_soon(send_until_refused, caller.stream, b"x" * (64 << 10))
        assert (await caller.next())["error"]["code"] == -32600


async def send_until_refused(stream: UNIXSocketStream, chunk: bytes) -> None:
    with anyio.fail_after(10), suppress(anyio.BrokenResourceError):
        while True:
            await stream.send(chunk)


async def test_a_client_that_leaves_before_the_too_long_error_is_harmless() -> None:
    ours, theirs = socket.socketpair()
    near = await UNIXSocketStream.from_socket(ours)

    def send_and_leave() -> None:
        with theirs, suppress(BrokenPipeError):
            for _ in range(65):  # one byte above the limit
                theirs.sendall(b"x" * (64 << 10))

    with anyio.fail_after(HANG_GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(
                serve_control, near, FakeDispatcher(), admit, anyio.lowlevel.checkpoint
            )
            await anyio.to_thread.run_sync(send_and_leave)


async def test_a_client_that_leaves_during_progress_is_harmless() -> None:
    dispatcher = FakeDispatcher()
    async with connected(dispatcher) as caller:
        await caller.send('{"jsonrpc":"2.0","id":1,"method":"scan"}')
        await caller.stream.aclose()
        with anyio.fail_after(HANG_GUARD_S):
            while not dispatcher.asked:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        dispatcher.may_finish.set()


async def test_progress_comes_before_the_answer_and_only_the_newest_counts() -> None:
    dispatcher = FakeDispatcher()
    async with connected(dispatcher) as caller:
        first = await caller.call("scan")
        assert first["method"] == "progress"
        assert first["params"]["folders"] == 2
        dispatcher.may_finish.set()
        assert (await caller.next())["result"] == {"revision": 7}


class SlowDispatcher(FakeDispatcher):
    """Answers only when it may finish, without progress."""

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        await self.may_finish.wait()
        return {"revision": 7}


# What means as many projects as a person likes.
LONG: Mapping[str, Mapping[str, object]] = {
    "add_folders": {"paths": ["/src/a", "/src/b"], "tag": "work"},
    "decide": {"verb": "approve", "cwd": "/", "refs": ["*"]},
    "rule-add": {"verdict": "approved", "pattern": "/src/*", "cwd": "/"},
    "rule-rm": {"number": 1},
    "scan": {},
    "show": {"cwd": "/", "refs": ["*"]},
    "undo": {},
}


@pytest.mark.parametrize("method", LONG)
async def test_a_long_request_says_that_it_works_until_its_answer(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WORKING_INTERVAL_S", 0.001)
    dispatcher = SlowDispatcher()
    async with connected(dispatcher) as caller:
        working = {"jsonrpc": "2.0", "method": "working", "params": {}}
        assert await caller.call(method, **LONG[method]) == working
        assert await caller.next() == working
        dispatcher.may_finish.set()
        while (line := await caller.next()) == working:
            pass
        assert line["result"] == {"revision": 7}


async def test_a_long_request_says_that_it_works_while_the_guard_reads_what_it_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(request: ControlRequest, typed: str | None) -> Actor:
        del request, typed
        await dispatcher.may_finish.wait()
        raise CallerRefused("no", "rootsd status")

    monkeypatch.setattr(server, "WORKING_INTERVAL_S", 0.001)
    dispatcher = FakeDispatcher()
    async with connected(dispatcher, admit=refuse) as caller:
        assert (await caller.call("decide", **LONG["decide"]))["method"] == "working"
        dispatcher.may_finish.set()
        while "id" not in (line := await caller.next()):
            pass
        assert line["error"]["message"] == "no"


async def test_a_notification_gets_no_answer() -> None:
    dispatcher = FakeDispatcher()
    async with connected(dispatcher) as caller:
        await caller.send('{"jsonrpc":"2.0","method":"status"}')
        assert (await caller.call("status"))["id"] == 1
    assert len(dispatcher.asked) == 1


async def test_a_challenge_asks_for_a_word_and_accepts_the_right_one() -> None:
    async with connected(FakeDispatcher()) as caller:
        asked = await caller.call("log")
        assert asked["error"]["data"]["code"] == "refused"
        assert asked["error"]["data"]["challenge"] == {"terminal": "pts/7"}
        wrong = await caller.call("log", typed="dada")
        assert wrong["error"]["message"] == "that is not the word"
        assert "challenge" not in wrong["error"]["data"]
        assert (await caller.call("log", typed=1))["error"]["data"]["code"] == "usage"
        assert (await caller.call("log", typed="bada"))["result"] == {"revision": 7}


class EndlessNews:
    """A subscription with two tasks that both send."""

    async def send_updates(
        self, send: Callable[[str, Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        async def send_on() -> None:
            while True:
                await send("news", {"text": "x" * 1_000})

        async with anyio.create_task_group() as group:
            group.start_soon(send_on)
            group.start_soon(send_on)

    def close(self) -> None:
        """End."""


class NewsDispatcher(FakeDispatcher):
    """Begins a subscription."""

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        call.connection.subscription = EndlessNews()
        return {}


async def test_a_follower_that_leaves_while_several_tasks_send_is_harmless() -> None:
    near, far = socket.socketpair()
    client = await UNIXSocketStream.from_socket(far)
    server = await UNIXSocketStream.from_socket(near)
    dispatcher = NewsDispatcher()
    async with anyio.create_task_group() as group:
        group.start_soon(serve_control, server, dispatcher, admit, anyio.lowlevel.checkpoint)
        await Caller(client).call("status")
        await client.receive()
        await client.aclose()
