"""Roots in MCP 2026-07-28: requested by results, alone or with other input."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.bridges import META_2026, fault, notice, reply, request
from support.run_session_harness import API, DOCS, WEB, SessionHarness, call_2026, paths

ROOTS = {"method": "roots/list"}
ELICIT = {"method": "elicitation/create", "params": {"message": "sure?"}}
SAMPLE = {"method": "sampling/createMessage", "params": {"maxTokens": 1.0}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def wants(id_: object, state: object = ..., /, **inputs: object) -> bytes:
    """Return a result in which the server requires input."""
    result: dict[str, Any] = {"resultType": "input_required", "inputRequests": inputs}
    if state is not ...:
        result["requestState"] = state
    return reply(id_, result)


def answers_of(message: dict[str, Any]) -> dict[str, list[str]]:
    """Return the paths that the server gets under each key."""
    return {key: paths(value) for key, value in message["params"]["inputResponses"].items()}


def test_every_request_declares_roots_and_is_otherwise_unchanged() -> None:
    harness = SessionHarness()
    line = call_2026(1, n=1.10)
    harness.client(line)
    stamped = line.replace(b'Capabilities": {}', b'Capabilities": {"roots":{}}')
    assert harness.raw_to_server() == stamped != line
    declared = call_2026(2, roots=True)
    harness.client(declared)
    assert harness.raw_to_server() == declared
    discover = request(3, "server/discover", {"_meta": META_2026})
    harness.client(discover)
    assert b'{"roots":{}}' in harness.raw_to_server()


@pytest.mark.parametrize("value", [None, [], 3, "x"])
def test_a_malformed_request_is_left_to_the_server(value: object) -> None:
    harness = SessionHarness()
    line = request(1, "tools/call", {"_meta": {**META_2026, CAPABILITIES: value}})
    harness.client(line)
    assert harness.raw_to_server() == line


@pytest.mark.parametrize("state", [..., "v1.x", "", {"a": [1]}, None])
def test_a_roots_only_question_is_answered_by_a_hidden_retry(state: object) -> None:
    harness = SessionHarness(API, WEB)
    harness.client(call_2026(0, n=1.10))
    harness.raw_to_server()
    harness.server(wants(0, state, a=ROOTS, b=ROOTS))
    assert harness.raw_to_client() == b""
    (again,) = harness.to_server()
    assert again["id"] != 0
    assert answers_of(again) == {"a": ["/src/api", "/src/web"], "b": ["/src/api", "/src/web"]}
    assert again["params"].get("requestState", ...) == state
    assert (again["params"]["name"], again["params"]["n"]) == ("look", 1.10)
    harness.server(reply(again["id"], {"x": 1}))
    assert harness.raw_to_client() == reply(0, {"x": 1})
    assert not harness.session.pending_responses


def test_an_error_after_a_retry_reaches_the_client() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026("x"))
    harness.server(wants("x", a=ROOTS))
    harness.server(fault(harness.to_server()[-1]["id"], -32602))
    assert harness.raw_to_client() == fault("x", -32602)


def test_each_retry_gets_the_current_roots() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.raw_to_server()
    harness.is_daemon_there = False
    harness.server(wants(1, a=ROOTS))
    assert harness.raw_to_server() == b""
    harness.approved, harness.is_daemon_there = (WEB,), True
    harness.client()
    assert answers_of(harness.to_server()[0]) == {"a": ["/src/web"]}


def test_endless_roots_questions_are_given_up() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    rounds = 0
    while (sent := harness.to_server()) and rounds < 50:
        harness.server(wants(sent[0]["id"], a=ROOTS))
        rounds += 1
    assert rounds == 11
    (answer,) = harness.to_client()
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


@pytest.mark.parametrize("state", [..., "v1.x", {"a": [1]}, None])
def test_other_questions_go_to_the_client_and_roots_are_added_to_its_answers(
    state: object,
) -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.raw_to_server()
    harness.server(wants(1, state, e=ELICIT, r=ROOTS, s=SAMPLE))
    (answer,) = harness.to_client()
    assert answer["result"]["inputRequests"] == {"e": ELICIT, "s": SAMPLE}
    assert not harness.session.pending_responses, (
        "the client has its answer, and asks again if it likes"
    )
    brought = {"e": {"action": "accept"}, "s": {"role": "assistant"}}
    held = answer["result"]["requestState"]
    harness.client(call_2026(2, inputResponses=brought, requestState=held))
    (again,) = harness.to_server()
    assert again["id"] == 2
    roots = again["params"]["inputResponses"].pop("r")
    assert again["params"]["inputResponses"] == brought
    assert paths(roots) == ["/src/api"]
    assert again["params"].get("requestState", ...) == state


def test_roots_can_be_requested_again_after_a_mixed_question() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.server(wants(1, "one", e=ELICIT, r=ROOTS))
    held = harness.to_client()[0]["result"]["requestState"]
    harness.client(call_2026(2, inputResponses={"e": {}}, requestState=held))
    harness.raw_to_server()
    harness.server(wants(2, r=ROOTS))
    (again,) = harness.to_server()
    assert answers_of(again) == {"r": ["/src/api"]}
    assert "requestState" not in again["params"]
    harness.server(reply(again["id"], {"done": True}))
    assert harness.raw_to_client() == reply(2, {"done": True})


def test_questions_without_roots_are_not_touched() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.raw_to_server()
    line = wants(1, "v1.x", e=ELICIT, s=SAMPLE)
    harness.server(line)
    assert harness.raw_to_client() == line
    back = call_2026(2, roots=True, inputResponses={"e": {}}, requestState="v1.x")
    harness.client(back)
    assert harness.raw_to_server() == back


@pytest.mark.parametrize("state", ["rootsd1.", "rootsd1.!!", "rootsd1.e30=", "rootsd1.WzFd", 7])
def test_a_forged_state_is_left_to_the_server(state: object) -> None:
    harness = SessionHarness(API)
    line = call_2026(1, roots=True, requestState=state)
    harness.client(line)
    assert harness.raw_to_server() == line


def test_a_client_with_roots_is_asked_and_its_answer_narrowed() -> None:
    harness = SessionHarness(API, WEB)
    harness.client(call_2026(1, roots=True))
    harness.server(wants(1, "v1", r=ROOTS))
    (answer,) = harness.to_client()
    assert answer["result"]["inputRequests"] == {"r": ROOTS}
    own = {"roots": [{"uri": "file:///src/web"}, {"uri": "file:///src/docs"}]}
    state = answer["result"]["requestState"]
    harness.raw_to_server()
    harness.client(call_2026(2, roots=True, inputResponses={"r": own}, requestState=state))
    (again,) = harness.to_server()
    assert answers_of(again) == {"r": ["/src/web"]}
    assert again["params"]["requestState"] == "v1"
    assert harness.out.proposals == [DOCS.path]


def test_a_retried_request_is_cancelled_under_its_new_id() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.server(wants(1, r=ROOTS))
    again = harness.to_server()[-1]["id"]
    other = notice("notifications/cancelled", {"requestId": "1", "reason": "x"})
    harness.client(notice("notifications/cancelled", {"requestId": 1, "reason": "x"}), other)
    first, second = harness.to_server()
    assert first["params"] == {"requestId": again, "reason": "x"}
    assert second["params"]["requestId"] == "1"


def test_a_request_that_waits_for_roots_is_cancelled_without_the_server() -> None:
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.raw_to_server()
    harness.is_daemon_there = False
    harness.server(wants(1, r=ROOTS))
    harness.client(notice("notifications/cancelled", {"requestId": 1}))
    harness.is_daemon_there = True
    harness.client()
    assert harness.raw_to_server() == b""
    assert not harness.session.pending_responses


def waiting_for_roots() -> SessionHarness:
    """Return a session whose request 2 waits for an answer of the daemon."""
    harness = SessionHarness(API)
    harness.client(call_2026(1))
    harness.server(wants(1, e=ELICIT, r=ROOTS))
    state = harness.to_client()[0]["result"]["requestState"]
    harness.raw_to_server()
    harness.is_daemon_there = False
    harness.client(call_2026(2, inputResponses={"e": {}}, requestState=state))
    return harness


def test_messages_behind_a_waiting_request_keep_their_order() -> None:
    harness = waiting_for_roots()
    harness.client(notice("notifications/cancelled", {"requestId": 1}), call_2026(3))
    assert harness.raw_to_server() == b""
    harness.is_daemon_there = True
    harness.client()
    sent = harness.to_server()
    assert [each.get("id") for each in sent] == [2, None, 3]


def test_a_waiting_request_that_is_cancelled_holds_nothing_and_never_runs() -> None:
    harness = waiting_for_roots()
    harness.client(notice("notifications/cancelled", {"requestId": 2}), call_2026(3))
    assert [each["id"] for each in harness.to_server()] == [3]
    harness.is_daemon_there = True
    harness.client()
    assert harness.raw_to_server() == b""


def test_both_protocol_versions_can_share_a_connection() -> None:
    harness = SessionHarness(API)
    harness.client(request(1, "server/discover", {"_meta": META_2026}))
    harness.server(fault(1, -32601))
    harness.shake_hands()
    assert harness.list_roots() == ["/src/api"]
    harness.client(call_2026(2))
    assert json.dumps(harness.to_server()).count('"roots": {}') == 1
