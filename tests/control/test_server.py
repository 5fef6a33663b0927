"""The control server: which requests are orders, and their stakes."""

from __future__ import annotations

import json
import socket
from typing import Any

import anyio
import pytest
from anyio.abc import UNIXSocketStream
from msgspec.structs import replace

from rootsd.control.dispatch import all_routes
from rootsd.control.routes import COMMAND_TEXT_LIMIT
from rootsd.control.server import ControlServer
from rootsd.core.guard_setting import Guard
from rootsd.core.model import Verdict
from rootsd.net.unix_socket import Peer
from rootsd.wire.daemon import (
    AnnounceRequest,
    ReloadRequest,
    StatusQuery,
    StopRequest,
)
from rootsd.wire.decisions import (
    AddFoldersRequest,
    AddRequest,
    AddRuleRequest,
    DecideRequest,
    FocusTarget,
    RemoveRuleRequest,
    RenameRequest,
    SetFocusRequest,
    TagRequest,
)
from rootsd.wire.guard import RemoteCommandRequest, SetGuardRequest, UndoRequest
from rootsd.wire.projects import Selection
from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.request import ApplyMode, ControlRequest
from support.control_harness import APPROVE, CWD, DENY, FORGET, ControlHarness
from support.control_requests import is_order, smallest_request
from support.ledger_harness import HANG_GUARD, path
from support.sample_decisions import approved, identity, project

ORDERS: list[Any] = [
    *(
        smallest_request(form)
        for form in REQUEST_TYPES
        if is_order(form) and form is not AddRequest
    ),
    DecideRequest(DENY, CWD, ("p1",)),
    DecideRequest(FORGET, CWD, ("p1",)),
    SetGuardRequest(Guard.OFF),
    AddRequest("/x", CWD, "api"),
]
LOOKS: list[ControlRequest] = [
    *(smallest_request(form) for form in REQUEST_TYPES if not is_order(form)),
    AddRequest("/x", CWD),
    *(replace(order, effect=ApplyMode.DRY_RUN) for order in ORDERS),
]


def test_every_request_type_has_one_route() -> None:
    routed = [route.request_type for route in all_routes(ControlHarness().services)]
    assert sorted(routed, key=id) == sorted(REQUEST_TYPES, key=id)


def test_exactly_the_requests_with_an_effect_are_orders() -> None:
    dispatcher = ControlHarness().dispatcher
    assert all(dispatcher.guarded_command(request) is not None for request in ORDERS)
    assert all(dispatcher.guarded_command(request) is None for request in LOOKS)


async def stakes_of(request: ControlRequest, control: ControlHarness) -> list[str]:
    order = control.dispatcher.guarded_command(request)
    assert order is not None
    return list(await order.preview())


async def test_the_stakes_name_paths_and_computing_them_decides_nothing() -> None:
    control = ControlHarness(project(1), project(2), approved(3))
    assert await stakes_of(DecideRequest(APPROVE, CWD, ("p1", "p3")), control) == [
        "approve /home/ann/src/p1",
        "approve /home/ann/src/p3",
    ]
    every = DecideRequest(APPROVE, CWD, select=Selection.PENDING, under="/home/ann")
    assert await stakes_of(every, control) == [
        "approve /home/ann/src/p1",
        "approve /home/ann/src/p2",
    ]
    assert await stakes_of(SetGuardRequest(Guard.OFF), control) == ["rootsd guard off"]
    assert await stakes_of(RemoveRuleRequest(3), control) == ["rootsd rule rm 3"]
    rule = AddRuleRequest(Verdict.APPROVED, "/x\x1b", CWD)
    assert await stakes_of(rule, control) == ["rootsd rule add approve /x\\u{1b}"]
    order = control.dispatcher.guarded_command(AddRuleRequest(Verdict.APPROVED, "x" * 999, CWD))
    assert order is not None
    assert len(order.text) <= COMMAND_TEXT_LIMIT + 1
    assert control.world.saver.batches == []


async def test_long_lists_of_paths_are_shortened() -> None:
    control = ControlHarness(*(project(n) for n in range(30)))
    told = await stakes_of(DecideRequest(APPROVE, CWD, select=Selection.PENDING), control)
    assert len(told) == 21
    assert told[-1] == "and 10 more"


async def test_a_folder_that_no_scan_found_is_named_before_it_is_proposed() -> None:
    control = ControlHarness()
    control.world.disk.folders[path(1)] = identity(1)
    order = DecideRequest(APPROVE, CWD, ("./p1",))
    assert await stakes_of(order, control) == ["approve /home/ann/src/p1"]
    assert control.discovery.proposed == []


async def test_a_name_that_means_nothing_is_named_as_typed() -> None:
    order = DecideRequest(APPROVE, CWD, ("new\x1b",))
    assert await stakes_of(order, ControlHarness()) == ["approve new\\u{1b} (in /home/ann/src)"]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (DecideRequest(DENY, CWD, ("a\x1b", "b")), "deny a\\u{1b} b"),
        (
            DecideRequest(APPROVE, CWD, select=Selection.LAPSED, under="/x"),
            "approve --lapsed --under /x",
        ),
        (TagRequest(("a*",), CWD, on=("go",), off=("work",)), "tag a* go --rm work"),
        (RenameRequest("a\x1b", "b", CWD), "rename a\\u{1b} b"),
        (SetFocusRequest("work", FocusTarget.ALL), "focus work --now"),
        (SetFocusRequest(None), "focus --clear"),
        (AddFoldersRequest(("/a",), "x"), "add (1 folders) --tag x"),
        (UndoRequest(), "undo"),
    ],
)
def test_an_order_has_a_text(request_: ControlRequest, text: str) -> None:
    order = ControlHarness().dispatcher.guarded_command(request_)
    assert order is not None
    assert order.text == text


async def _answer_to(line: bytes, pid: int) -> dict[str, Any]:
    control = ControlHarness(project(1))
    ours, theirs = socket.socketpair()
    near = await UNIXSocketStream.from_socket(ours)
    far = await UNIXSocketStream.from_socket(theirs)
    async with anyio.create_task_group() as group, far:
        group.start_soon(
            ControlServer(control.guard, control.dispatcher).serve,
            near,
            Peer(pid, 0),
            lambda: None,
        )
        with anyio.fail_after(HANG_GUARD):
            await far.send(line)
            answer = await far.receive()
            await far.send_eof()
    told: dict[str, Any] = json.loads(answer)
    return told


@pytest.mark.parametrize("method", ["status", "stop", "decide"])
async def test_a_caller_from_another_pid_namespace_is_refused_for_every_request(
    method: str,
) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"verb":"deny","cwd":"/"}}\n'
    answer = await _answer_to(line % method.encode(), 0)
    assert answer["error"]["data"]["code"] == "refused"
    assert "another pid namespace" in answer["error"]["message"]


def test_a_recorded_command_of_an_agent_is_named() -> None:
    dispatcher = ControlHarness().dispatcher
    commands = {
        type(request): dispatcher.recorded_command(request) for request in (*LOOKS, *ORDERS)
    }
    assert {kind for kind, command in commands.items() if command} == {
        StopRequest,
        AnnounceRequest,
    }
    assert dispatcher.recorded_command(StopRequest()) == "down"
    assert dispatcher.recorded_command(ReloadRequest("parent rm /x\x1b")) == "parent rm /x\\u{1b}"
    assert len(dispatcher.recorded_command(AnnounceRequest("x" * 10_000))) <= COMMAND_TEXT_LIMIT


def test_only_what_shows_or_records_something_of_a_person_depends_on_the_caller() -> None:
    dispatcher = ControlHarness().dispatcher
    assert dispatcher.needs_caller(StatusQuery(is_look=True))
    assert dispatcher.needs_caller(ReloadRequest())
    remote = RemoteCommandRequest("pending --host ann@build", ApplyMode.DRY_RUN)
    assert dispatcher.needs_caller(remote)
    assert not any(
        dispatcher.needs_caller(request)
        for request in LOOKS
        if not isinstance(request, ReloadRequest | RemoteCommandRequest | AddRequest)
    )
    assert dispatcher.needs_caller(AddRequest("/x", CWD)), "undo knows the last command"
    assert not dispatcher.needs_caller(AddRequest("/x", CWD, effect=ApplyMode.DRY_RUN))
    assert dispatcher.needs_caller(AnnounceRequest("connect codex"))


async def test_a_query_needs_no_admission() -> None:
    answer = await _answer_to(b'{"jsonrpc":"2.0","id":1,"method":"guard"}\n', 2**22 + 1)
    assert answer["result"]["guard"] == "agents"


async def test_a_connection_is_active_after_its_first_request() -> None:
    control, heard = ControlHarness(), list[bool]()
    ours, theirs = socket.socketpair()
    near = await UNIXSocketStream.from_socket(ours)
    far = await UNIXSocketStream.from_socket(theirs)
    async with anyio.create_task_group() as group, far:
        door = ControlServer(control.guard, control.dispatcher)
        group.start_soon(door.serve, near, Peer(2**22 + 1, 0), lambda: heard.append(True))
        with anyio.fail_after(HANG_GUARD):
            await far.send(b"no message\n")
            await far.receive()
            assert heard == []
            await far.send(b'{"jsonrpc":"2.0","id":1,"method":"guard"}\n')
            await far.receive()
            assert heard == [True]
            await far.send_eof()
