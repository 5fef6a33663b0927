"""Edits of single messages of MCP 2026-07-28. test_router.py tests whole exchanges."""

from __future__ import annotations

import json

import pytest

from rootsd.proxy.run import input_required
from rootsd.proxy.run.input_required import RootsQuestion, StateSigner
from rootsd.wire.jsonrpc import Request, parse
from support.bridges import META_2026
from support.run_session_harness import call_2026


def as_request(line: bytes) -> Request:
    message = parse(line)
    assert isinstance(message, Request)
    return message


def test_a_request_carries_its_protocol_version() -> None:
    assert input_required.carries_protocol_version(as_request(call_2026(1)))
    assert not input_required.carries_protocol_version(
        Request(1, "tools/call", {"_meta": {"progressToken": 1}})
    )
    assert not input_required.carries_protocol_version(Request(1, "tools/call", [META_2026]))


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"resultType": "complete", "inputRequests": {"r": {"method": "roots/list"}}},
        {"resultType": "input_required"},
        {"resultType": "input_required", "inputRequests": []},
        {"resultType": "input_required", "inputRequests": {"r": None, "s": {"method": 3}}},
    ],
)
def test_a_result_without_a_roots_request_has_no_question(result: object) -> None:
    assert input_required.find_roots_question(result) is None


def test_hiding_and_forwarding_change_nothing_else() -> None:
    text = (
        '{"id":1,"result":{ "inputRequests":{"r":{"method":"roots/list"},"e":{"n":1e400}},'
        '"resultType":"input_required","requestState":"s","n":1.10}}'
    )
    question = RootsQuestion(("r",), "s", has_state=True)
    for change in (input_required.hide_roots_question, input_required.forward_roots_question):
        changed = change(text, question, StateSigner(b"a test", "tag"))
        assert '"e":{"n":1e400}' in changed
        assert '"n":1.10' in changed
        state = json.loads(changed)["result"]["requestState"]
        back = Request(1, "tools/call", {"requestState": state})
        assert input_required.unwrap_state(back, StateSigner(b"another proxy", "tag")) is None
        wrapped = input_required.unwrap_state(back, StateSigner(b"a test", "tag"))
        assert wrapped is not None
        assert wrapped.question == question


def test_a_retry_drops_earlier_answers() -> None:
    line = call_2026(1, inputResponses={"old": {}}, requestState="old")
    question = RootsQuestion(("r",), None, has_state=False)
    again = json.loads(
        input_required.make_retry(line.decode(), as_request(line), "n", question, {"r": {}})
    )
    assert again["id"] == "n"
    assert again["params"]["inputResponses"] == {"r": {}}
    assert "requestState" not in again["params"]
