"""Sessions of the handshake era: what passes as it came, and what is answered when all ends."""

from __future__ import annotations

import json

import pytest

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.line_reader import MAX_LINE_BYTES
from rootsd.proxy.run.roots import ClientRootsPolicy
from support.bridges import fault, notice, reply, request
from support.relaying import API, WEB, Desk, call, messages

CHANGED = "notifications/roots/list_changed"
UNREADABLE = b'{"jsonrpc":"2.0","id":1'

LINES = [
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e400,"b":"\\ud800","c":1.10}}',
    b'  {"id":"","jsonrpc":"2.0","method":"tools\\/list"}\r',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"a"} , {"jsonrpc":"2.0","method":"b"}]',
    b'{"jsonrpc":"2.0","id":9007199254740991,"method":"x","params":null}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 120 + b"]" * 120 + b"}}",
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[:20]))
def test_what_is_not_about_roots_passes_as_the_bytes_it_came_in(line: bytes) -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.list_roots()
    desk.client(line)
    assert desk.raw_to_server() == line + b"\n"
    desk.server(line)
    assert desk.raw_to_client() == line + b"\n"


def test_questions_of_the_server_and_their_answers_pass_untouched() -> None:
    desk = Desk(API)
    desk.shake_hands({"sampling": {}, "elicitation": {}})
    asked = request(0, "sampling/createMessage", {"messages": [], "maxTokens": 1.0})
    desk.server(asked)
    assert desk.raw_to_client() == asked
    answer = b'{"result":{"x":1.0},"id":0,"jsonrpc":"2.0"}\n'
    desk.client(answer)
    assert desk.raw_to_server() == answer


def test_long_answers_pass_unread_and_settle_what_was_asked() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.list_roots()
    for id_ in (7, "seven"):
        for shape in (
            '{{"result":"{}","jsonrpc":"2.0","id":{}}}',
            '{{"jsonrpc":"2.0","id":{1},"result":"{0}"}}',
        ):
            desk.client(call(id_))
            assert desk.session.pending_responses
            line = shape.format("x" * 50_000, json.dumps(id_)).encode()
            desk.server(line)
            assert desk.raw_to_client() == line + b"\n"
            assert not desk.session.pending_responses


def test_a_long_question_about_roots_is_found() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.raw_to_client()
    escaped = "roots/list".replace("o", "\\u006f")
    padding = "x" * 50_000
    line = f'{{"jsonrpc":"2.0","id":3,"x":"{padding}","method":"{escaped}"}}'
    desk.server(line.encode())
    assert [each["id"] for each in desk.to_server()] == [3]
    assert desk.raw_to_client() == b""


def test_batches_lose_what_is_about_roots_alone() -> None:
    desk = Desk(API)
    desk.shake_hands()
    ping = b'{ "jsonrpc":"2.0","id":1,"method":"ping"}'
    asked = request(2, "roots/list").strip()
    desk.server(b"[" + asked + b", " + ping + b"]")
    assert desk.raw_to_client() == b"[" + ping + b"]\n"
    assert [each["id"] for each in desk.to_server()] == [2]
    desk.server(b"[" + asked + b"]")
    assert desk.raw_to_client() == b""
    desk.wait(1)
    desk.raw_to_server()
    desk.client(b"[" + notice(CHANGED).strip() + b"," + ping + b"]")
    assert desk.raw_to_server() == b"[" + ping + b"]\n"


def test_a_batch_with_a_call_waits_as_a_call_does() -> None:
    desk = Desk(API)
    desk.shake_hands()
    batch = b"[" + call(1).strip() + b"," + request(2, "ping").strip() + b"]"
    desk.client(batch)
    assert desk.raw_to_server() == b""
    desk.list_roots()
    desk.wait(1)
    assert b'"id": 1' in batch


# Ends


def test_when_the_server_ends_whatever_waits_is_answered() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.client(request(1, "tools/list"), call(2), b"[" + call(3).strip() + b"]")
    desk.session.fail_all(RootsdError("the server has ended", "start it"))
    answers = desk.to_client()
    assert [(each["id"], each["error"]["code"]) for each in answers] == [
        (1, -32603), (2, -32603), (3, -32603),
    ]  # fmt: skip
    assert not desk.session.pending_responses


def test_a_line_that_is_too_long_is_answered_as_far_as_it_can_be() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.session.refuse_oversized_line()
    (refusal,) = desk.to_client()
    assert refusal["error"]["message"] == f"the line is longer than {MAX_LINE_BYTES} bytes"
    desk.client(request(5, "tools/list"))
    desk.session.fail_oversized_response(b'{"jsonrpc":"2.0","id":5,"result":"xxxx')
    (answer,) = desk.to_client()
    assert (answer["id"], answer["error"]["code"]) == (5, -32603)
    desk.session.fail_oversized_response(b'{"jsonrpc":"2.0","method":"x"')
    assert desk.to_client() == []


def test_streams_are_nothing_that_a_client_waits_for() -> None:
    desk = Desk(API)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    desk.client(request(4, "subscriptions/listen", {"_meta": meta, "notifications": {}}))
    assert desk.session.pending_responses
    opened = {"_meta": {"io.modelcontextprotocol/subscriptionId": 4}, "notifications": {}}
    desk.server(notice("notifications/subscriptions/acknowledged", opened))
    assert not desk.session.pending_responses


def test_errors_of_the_server_pass_even_where_they_answer_nothing() -> None:
    desk = Desk(API)
    desk.shake_hands()
    for line in (fault(9, -32601), reply("never asked", {}), fault(None, -32700)):
        desk.server(line)
        assert desk.raw_to_client() == line


def test_nothing_is_asked_of_a_client_that_is_ignored() -> None:
    desk = Desk(API, use=ClientRootsPolicy.OVERRIDE)
    desk.shake_hands({"roots": {"listChanged": True}})
    assert [each["id"] for each in messages(desk.raw_to_client())] == [0]


def test_what_the_server_was_told_is_noted() -> None:
    desk = Desk(API, WEB, here=b"/src/web")
    desk.shake_hands()
    assert desk.out.reported_roots is None
    desk.list_roots()
    assert desk.out.reported_roots == ("web", "api")
    started = Desk(API, words=("server", "{roots}"))
    assert started.out.reported_roots == ("api",)
