"""Sessions with a handshake: what passes unchanged, and what is answered at the end."""

from __future__ import annotations

import json

import pytest

from rootsd.core.errors import RootsdError
from rootsd.proxy.run.line_reader import MAX_LINE_BYTES
from support.bridges import fault, notice, reply, request
from support.run_session_harness import API, WEB, SessionHarness, call

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
def test_messages_not_about_roots_pass_unchanged(line: bytes) -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.list_roots()
    harness.client(line)
    assert harness.raw_to_server() == line + b"\n"
    harness.server(line)
    assert harness.raw_to_client() == line + b"\n"


def test_long_responses_pass_unread_and_close_their_requests() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.list_roots()
    for id_ in (7, "seven"):
        for shape in (
            '{{"result":"{}","jsonrpc":"2.0","id":{}}}',
            '{{"jsonrpc":"2.0","id":{1},"result":"{0}"}}',
        ):
            harness.client(call(id_))
            assert harness.session.pending_responses
            line = shape.format("x" * 50_000, json.dumps(id_)).encode()
            harness.server(line)
            assert harness.raw_to_client() == line + b"\n"
            assert not harness.session.pending_responses


def test_a_long_response_with_a_line_end_inside_becomes_one_line() -> None:
    """Some clients take a carriage return for the end of a line."""
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.list_roots()
    padding = b"x" * 50_000
    for end in (b"", b"\r"):
        harness.client(call(7))
        line = b'{"jsonrpc":"2.0","id":7,"result":["%s",%s{"id":3,"method":"x"}]}' % (padding, end)
        harness.server(line + b"\r")
        passed = line + b"\r" if not end else line.replace(end, b"")
        assert harness.raw_to_client() == passed + b"\n"


def test_a_request_with_the_id_of_another_proxy_gets_an_id_of_ours() -> None:
    """It may be one that the client answers for this proxy."""
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.raw_to_client()
    asked = request("rootsd-run-other-again-1", "elicitation/create", {"message": "sure?"})
    harness.server(asked)
    (passed,) = harness.to_client()
    assert passed["id"].startswith("rootsd-run-tag-")
    assert {**passed, "id": "rootsd-run-other-again-1"} == json.loads(asked)
    harness.raw_to_server()
    harness.client(reply(passed["id"], {"action": "decline"}))
    assert harness.raw_to_server() == reply("rootsd-run-other-again-1", {"action": "decline"})


def test_a_long_roots_question_is_found() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.raw_to_client()
    escaped = "roots/list".replace("o", "\\u006f")
    padding = "x" * 50_000
    line = f'{{"jsonrpc":"2.0","id":3,"x":"{padding}","method":"{escaped}"}}'
    harness.server(line.encode())
    assert [each["id"] for each in harness.to_server()] == [3]
    assert harness.raw_to_client() == b""


def test_batches_lose_only_messages_about_roots() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    ping = b'{ "jsonrpc":"2.0","id":1,"method":"ping"}'
    asked = request(2, "roots/list").strip()
    harness.server(b"[" + asked + b", " + ping + b"]")
    assert harness.raw_to_client() == b"[" + ping + b"]\n"
    assert [each["id"] for each in harness.to_server()] == [2]
    harness.server(b"[" + asked + b"]")
    assert harness.raw_to_client() == b""
    harness.wait(1)
    harness.raw_to_server()
    harness.client(b"[" + notice(CHANGED).strip() + b"," + ping + b"]")
    assert harness.raw_to_server() == b"[" + ping + b"]\n"


def test_a_batch_with_a_call_waits_like_a_call() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    batch = b"[" + call(1).strip() + b"," + request(2, "ping").strip() + b"]"
    harness.client(batch)
    assert harness.raw_to_server() == b""
    harness.list_roots()
    harness.wait(1)
    assert b'"id": 1' in batch


# Ends


def test_waiting_requests_are_answered_when_the_server_ends() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.client(request(1, "tools/list"), call(2), b"[" + call(3).strip() + b"]")
    harness.session.fail_all(RootsdError("the server has ended", "start it"))
    answers = harness.to_client()
    assert [(each["id"], each["error"]["code"]) for each in answers] == [
        (1, -32603), (2, -32603), (3, -32603),
    ]  # fmt: skip
    assert not harness.session.pending_responses


def test_an_oversized_line_is_answered_if_possible() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.session.refuse_oversized_line()
    (refusal,) = harness.to_client()
    assert refusal["error"]["message"] == f"the line is longer than {MAX_LINE_BYTES} bytes"
    harness.client(request(5, "tools/list"))
    harness.session.fail_oversized_response(b'{"jsonrpc":"2.0","id":5,"result":"xxxx')
    (answer,) = harness.to_client()
    assert (answer["id"], answer["error"]["code"]) == (5, -32603)
    harness.session.fail_oversized_response(b'{"jsonrpc":"2.0","method":"x"')
    assert harness.to_client() == []


def test_open_streams_do_not_count_as_pending() -> None:
    harness = SessionHarness(API)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    harness.client(request(4, "subscriptions/listen", {"_meta": meta, "notifications": {}}))
    assert harness.session.pending_responses
    opened = {"_meta": {"io.modelcontextprotocol/subscriptionId": 4}, "notifications": {}}
    harness.server(notice("notifications/subscriptions/acknowledged", opened))
    assert not harness.session.pending_responses


def test_server_errors_without_an_id_pass() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    for line in (fault(9, -32601), reply("never asked", {}), fault(None, -32700)):
        harness.server(line)
        assert harness.raw_to_client() == line


def test_the_roots_of_the_server_are_reported() -> None:
    harness = SessionHarness(API, WEB, here=b"/src/web")
    harness.shake_hands()
    assert harness.out.reported_roots is None
    harness.list_roots()
    assert harness.out.reported_roots == ("web", "api")
    started = SessionHarness(API, words=("server", "{roots}"))
    assert started.out.reported_roots == ("api",)


def test_only_text_after_the_last_message_is_the_reason_of_an_end() -> None:
    harness = SessionHarness(API)
    harness.server(b"Welcome!")
    assert harness.session.printed_text == "Welcome!"
    harness.shake_hands()
    assert harness.session.printed_text == ""
    harness.server(b'{"jsonrpc":"2.0","id":{},"result":"a secret"}')
    assert harness.session.printed_text == "", "a response is no reason"
    assert "secret" not in str(harness.out.dropped_lines)
