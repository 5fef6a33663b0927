"""Roots in 2026-07-28: asked for by answers, alone or with other things."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rootsd.proxy.run.roots import ClientRootsPolicy
from support.bridges import META_2026, fault, notice, reply, request
from support.relaying import API, DOCS, WEB, Desk, call_2026, paths

ROOTS = {"method": "roots/list"}
ELICIT = {"method": "elicitation/create", "params": {"message": "sure?"}}
SAMPLE = {"method": "sampling/createMessage", "params": {"maxTokens": 1.0}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def wants(id_: object, state: object = ..., /, **inputs: object) -> bytes:
    """The server needs more to answer."""
    result: dict[str, Any] = {"resultType": "input_required", "inputRequests": inputs}
    if state is not ...:
        result["requestState"] = state
    return reply(id_, result)


def answers_of(message: dict[str, Any]) -> dict[str, list[str]]:
    """The paths under each key that the server is given."""
    return {key: paths(value) for key, value in message["params"]["inputResponses"].items()}


def test_every_request_says_that_there_are_roots_and_nothing_else_is_changed() -> None:
    desk = Desk()
    line = call_2026(1, n=1.10)
    desk.client(line)
    stamped = line.replace(b'Capabilities": {}', b'Capabilities": {"roots":{}}')
    assert desk.raw_to_server() == stamped != line
    declared = call_2026(2, roots=True)
    desk.client(declared)
    assert desk.raw_to_server() == declared
    discover = request(3, "server/discover", {"_meta": META_2026})
    desk.client(discover)
    assert b'{"roots":{}}' in desk.raw_to_server()


@pytest.mark.parametrize("value", [None, [], 3, "x"])
def test_a_request_that_is_not_in_order_is_the_servers_to_refuse(value: object) -> None:
    desk = Desk()
    line = request(1, "tools/call", {"_meta": {**META_2026, CAPABILITIES: value}})
    desk.client(line)
    assert desk.raw_to_server() == line


@pytest.mark.parametrize("state", [..., "v1.x", "", {"a": [1]}, None])
def test_roots_alone_are_given_by_asking_again_and_the_client_sees_one_answer(
    state: object,
) -> None:
    desk = Desk(API, WEB)
    desk.client(call_2026(0, n=1.10))
    desk.raw_to_server()
    desk.server(wants(0, state, a=ROOTS, b=ROOTS))
    assert desk.raw_to_client() == b""
    (again,) = desk.to_server()
    assert again["id"] != 0
    assert answers_of(again) == {"a": ["/src/api", "/src/web"], "b": ["/src/api", "/src/web"]}
    assert again["params"].get("requestState", ...) == state
    assert (again["params"]["name"], again["params"]["n"]) == ("look", 1.10)
    desk.server(reply(again["id"], {"x": 1}))
    assert desk.raw_to_client() == reply(0, {"x": 1})
    assert not desk.session.pending_responses


def test_an_error_in_the_end_is_the_clients_too() -> None:
    desk = Desk(API)
    desk.client(call_2026("x"))
    desk.server(wants("x", a=ROOTS))
    desk.server(fault(desk.to_server()[-1]["id"], -32602))
    assert desk.raw_to_client() == fault("x", -32602)


def test_each_time_the_roots_are_those_of_the_moment() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.raw_to_server()
    desk.is_daemon_there = False
    desk.server(wants(1, a=ROOTS))
    assert desk.raw_to_server() == b""
    desk.approved, desk.is_daemon_there = (WEB,), True
    desk.client()
    assert answers_of(desk.to_server()[0]) == {"a": ["/src/web"]}


def test_a_server_that_asks_for_ever_is_given_up() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    rounds = 0
    while (sent := desk.to_server()) and rounds < 50:
        desk.server(wants(sent[0]["id"], a=ROOTS))
        rounds += 1
    assert rounds == 11
    (answer,) = desk.to_client()
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


@pytest.mark.parametrize("state", [..., "v1.x", {"a": [1]}, None])
def test_what_else_is_asked_goes_to_the_client_and_its_answers_with_the_roots_back(
    state: object,
) -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.raw_to_server()
    desk.server(wants(1, state, e=ELICIT, r=ROOTS, s=SAMPLE))
    (answer,) = desk.to_client()
    assert answer["result"]["inputRequests"] == {"e": ELICIT, "s": SAMPLE}
    assert not desk.session.pending_responses, (
        "the client has its answer, and asks again if it likes"
    )
    brought = {"e": {"action": "accept"}, "s": {"role": "assistant"}}
    held = answer["result"]["requestState"]
    desk.client(call_2026(2, inputResponses=brought, requestState=held))
    (again,) = desk.to_server()
    assert again["id"] == 2
    roots = again["params"]["inputResponses"].pop("r")
    assert again["params"]["inputResponses"] == brought
    assert paths(roots) == ["/src/api"]
    assert again["params"].get("requestState", ...) == state


def test_roots_may_be_asked_for_again_after_that() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.server(wants(1, "one", e=ELICIT, r=ROOTS))
    held = desk.to_client()[0]["result"]["requestState"]
    desk.client(call_2026(2, inputResponses={"e": {}}, requestState=held))
    desk.raw_to_server()
    desk.server(wants(2, r=ROOTS))
    (again,) = desk.to_server()
    assert answers_of(again) == {"r": ["/src/api"]}
    assert "requestState" not in again["params"]
    desk.server(reply(again["id"], {"done": True}))
    assert desk.raw_to_client() == reply(2, {"done": True})


def test_what_is_asked_without_roots_is_not_touched() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.raw_to_server()
    line = wants(1, "v1.x", e=ELICIT, s=SAMPLE)
    desk.server(line)
    assert desk.raw_to_client() == line
    back = call_2026(2, roots=True, inputResponses={"e": {}}, requestState="v1.x")
    desk.client(back)
    assert desk.raw_to_server() == back


@pytest.mark.parametrize("state", ["rootsd1.", "rootsd1.!!", "rootsd1.e30=", "rootsd1.WzFd", 7])
def test_a_state_that_was_tampered_with_is_the_servers_to_refuse(state: object) -> None:
    desk = Desk(API)
    line = call_2026(1, roots=True, requestState=state)
    desk.client(line)
    assert desk.raw_to_server() == line


def test_a_client_with_roots_is_asked_itself_and_its_answer_narrowed() -> None:
    desk = Desk(API, WEB)
    desk.client(call_2026(1, roots=True))
    desk.server(wants(1, "v1", r=ROOTS))
    (answer,) = desk.to_client()
    assert answer["result"]["inputRequests"] == {"r": ROOTS}
    own = {"roots": [{"uri": "file:///src/web"}, {"uri": "file:///src/docs"}]}
    state = answer["result"]["requestState"]
    desk.raw_to_server()
    desk.client(call_2026(2, roots=True, inputResponses={"r": own}, requestState=state))
    (again,) = desk.to_server()
    assert answers_of(again) == {"r": ["/src/web"]}
    assert again["params"]["requestState"] == "v1"
    assert desk.out.proposals == [DOCS.path]


def test_one_that_is_overridden_is_not_asked() -> None:
    desk = Desk(API, WEB, use=ClientRootsPolicy.OVERRIDE)
    desk.client(call_2026(1, roots=True))
    desk.raw_to_server()
    desk.server(wants(1, r=ROOTS))
    assert desk.to_client() == []
    assert answers_of(desk.to_server()[0]) == {"r": ["/src/api", "/src/web"]}


def test_a_request_that_went_again_is_cancelled_under_its_new_id() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.server(wants(1, r=ROOTS))
    again = desk.to_server()[-1]["id"]
    other = notice("notifications/cancelled", {"requestId": "1", "reason": "x"})
    desk.client(notice("notifications/cancelled", {"requestId": 1, "reason": "x"}), other)
    first, second = desk.to_server()
    assert first["params"] == {"requestId": again, "reason": "x"}
    assert second["params"]["requestId"] == "1"


def test_one_that_waits_for_roots_is_cancelled_without_the_server() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.raw_to_server()
    desk.is_daemon_there = False
    desk.server(wants(1, r=ROOTS))
    desk.client(notice("notifications/cancelled", {"requestId": 1}))
    desk.is_daemon_there = True
    desk.client()
    assert desk.raw_to_server() == b""
    assert not desk.session.pending_responses


def test_what_follows_a_request_that_waits_for_roots_keeps_its_place() -> None:
    desk = Desk(API)
    desk.client(call_2026(1))
    desk.server(wants(1, e=ELICIT, r=ROOTS))
    state = desk.to_client()[0]["result"]["requestState"]
    desk.raw_to_server()
    desk.is_daemon_there = False
    desk.client(
        call_2026(2, inputResponses={"e": {}}, requestState=state),
        notice("notifications/cancelled", {"requestId": 2}),
        call_2026(3),
    )
    assert desk.raw_to_server() == b""
    desk.is_daemon_there = True
    desk.client()
    sent = desk.to_server()
    assert [each.get("id") for each in sent] == [2, None, 3]


def test_both_eras_may_share_a_connection() -> None:
    desk = Desk(API)
    desk.client(request(1, "server/discover", {"_meta": META_2026}))
    desk.server(fault(1, -32601))
    desk.shake_hands()
    assert desk.list_roots() == ["/src/api"]
    desk.client(call_2026(2))
    assert json.dumps(desk.to_server()).count('"roots": {}') == 1
