"""Sessions of the handshake era: what passes, what does not, and in which order."""

from __future__ import annotations

import json

import pytest

from rootsd.core.errors import RootsdError
from rootsd.relay.barrier import Habit
from rootsd.relay.intake import LONGEST_LINE
from rootsd.relay.narrowing import Access, ClientRoots
from rootsd.relay.roots import Folder
from support.bridges import fault, notice, reply, request
from support.relaying import API, DOCS, NOWHERE, WEB, Desk, call, messages, paths

CHANGED = "notifications/roots/list_changed"
UNREADABLE = b'{"jsonrpc":"2.0","id":1'


def test_the_server_is_told_that_there_are_roots_and_nothing_else_is_changed() -> None:
    desk = Desk()
    line = (
        b'{ "id":0, "jsonrpc":"2.0","method":"initialize","params":{"n":1e400,"capabilities":'
        b'{"x":1.10}}}\n'
    )
    desk.client(line)
    roots = b'{"roots":{"listChanged": true},'
    assert desk.raw_to_server() == line.replace(b'{"x"', roots + b'"x"')


@pytest.mark.parametrize("declared", [{}, {"listChanged": False}, {"listChanged": True}])
def test_whatever_the_client_declares_the_server_hears_of_changes(declared: object) -> None:
    desk = Desk()
    desk.client(request(0, "initialize", {"capabilities": {"roots": declared, "x": {}}}))
    (told,) = desk.to_server()
    assert told["params"]["capabilities"] == {"roots": {"listChanged": True}, "x": {}}


@pytest.mark.parametrize("params", [None, {}, {"capabilities": 3}, {"capabilities": None}, []])
def test_an_initialize_that_is_not_in_order_is_the_servers_to_refuse(params: object) -> None:
    desk = Desk()
    line = request(0, "initialize", params)
    desk.client(line)
    assert desk.raw_to_server() == line


@pytest.mark.parametrize("id_", [0, 1, "0", "", -7])
def test_a_servers_question_is_answered_under_its_id_and_never_reaches_the_client(
    id_: object,
) -> None:
    desk = Desk(API, WEB)
    desk.shake_hands()
    desk.client(request(id_, "ping"))  # the same id the other way round is no matter
    desk.raw_to_server()
    assert desk.list_roots(id_) == ["/src/api", "/src/web"]
    assert desk.raw_to_client() == b""


def test_calls_wait_from_the_news_of_a_change_until_the_server_knows_it() -> None:
    desk = Desk(API, WEB, habit=Habit.ASKS)
    desk.shake_hands()
    desk.list_roots()
    desk.announce()
    desk.client(call(1), request(2, "tools/list"))
    assert desk.raw_to_server() == b"", "what is behind the call waits behind it"
    desk.approve(API)
    assert desk.to_server() == [{"jsonrpc": "2.0", "method": CHANGED}]
    assert desk.list_roots() == ["/src/api"]
    assert [each["id"] for each in desk.to_server()] == [1, 2]


def test_calls_go_on_where_the_news_was_none_for_this_server() -> None:
    desk = Desk(API, habit=Habit.ASKS)
    desk.shake_hands()
    desk.list_roots()
    desk.announce()
    desk.client(call(1))
    desk.approve(API)
    assert [each["id"] for each in desk.to_server()] == [1]


def test_a_question_may_be_spelled_with_escapes() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.server(b'{"jsonrpc":"2.0","id":"\\u0078","method":"roots\\/list"}')
    (answer,) = desk.to_server()
    assert (answer["id"], paths(answer["result"])) == ("x", ["/src/api"])


def test_no_root_at_all_is_an_empty_folder_where_there_is_one() -> None:
    desk = Desk()
    desk.shake_hands()
    assert desk.list_roots() == [NOWHERE.decode()]
    bare = Desk(nowhere=None)
    bare.shake_hands()
    assert bare.list_roots() == []


def test_a_change_is_told_to_a_server_that_reads_roots() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.list_roots()
    desk.approve(API, WEB)
    assert [each["method"] for each in desk.to_server()] == [CHANGED]
    assert desk.list_roots(1) == ["/src/api", "/src/web"]
    desk.approve(API, WEB)
    assert desk.to_server() == []


def test_a_server_that_was_never_told_of_roots_hears_of_no_change() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.approve(API, WEB)
    assert desk.to_server() == []


def test_every_answer_is_what_the_daemon_says_at_that_moment() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.list_roots()
    desk.is_daemon_there = False
    desk.server(request(5, "roots/list"))
    assert desk.to_server() == [], "what it said before is not enough"
    desk.approved, desk.is_daemon_there = (WEB,), True
    desk.client()
    changed, answer = desk.to_server()
    assert changed["method"] == CHANGED
    assert paths(answer["result"]) == ["/src/web"]


def test_calls_wait_for_the_roots_and_what_follows_keeps_its_place() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.client(request(1, "tools/list"))
    assert [each["id"] for each in desk.to_server()] == [1], "it needs no roots"
    desk.client(call(2), request(3, "tools/list"), notice("notifications/x"))
    assert desk.to_server() == []
    assert desk.session.backlog > 0
    desk.client(reply("ping-1", {}))
    assert [each["id"] for each in desk.to_server()] == ["ping-1"], "the server may wait for it"
    desk.server(request(0, "roots/list"))
    assert [each["id"] for each in desk.to_server()] == [0]
    desk.wait(0.2)
    assert [each.get("id") for each in desk.to_server()] == [2, 3, None]
    assert desk.session.backlog == 0


def test_a_call_after_a_revoke_waits_until_the_server_has_the_new_roots() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands()
    desk.list_roots()
    desk.approve(API)
    desk.client(call(1))
    assert [each["method"] for each in desk.to_server()] == [CHANGED]
    assert desk.list_roots(1)[0] == "/src/api"


def test_a_server_that_keeps_what_was_revoked_is_replaced() -> None:
    desk = Desk(API, WEB)
    desk.shake_hands()
    desk.list_roots()
    desk.approve(API, WEB, DOCS)
    desk.wait(2.0)
    assert not desk.out.wants_another, "it may use less than it could: no harm"
    desk.approve(API)
    desk.client(call(1))
    desk.wait(2.0)
    desk.raw_to_server()
    desk.another()
    again, *_ = desk.to_server()
    assert again["method"] == "initialize"
    desk.server(reply(again["id"], {"capabilities": {}}))
    assert [each["method"] for each in desk.to_server()] == ["notifications/initialized"]
    assert desk.list_roots(0) == ["/src/api"]
    assert [each["id"] for each in desk.to_server()] == [1]


def test_roots_for_reading_are_withheld_unless_advice_is_enough() -> None:
    read = Folder(b"/src/read", "read", writable=False)
    for access, expected in (
        (Access.WRITABLE, ["/src/api"]),
        (Access.ADVISORY, ["/src/api", "/src/read"]),
    ):
        desk = Desk(API, read, access=access)
        desk.shake_hands()
        assert desk.list_roots() == expected


# What is not about roots

LINES = [
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e400,"b":"\\ud800","b":1.10}}',
    b'  {"id":"","jsonrpc":"2.0","method":"tools\\/list"}\r',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"a"} , {"jsonrpc":"2.0","method":"b"}]',
    b"not json at all",
    b"",
    b"\xff\xfe",
    b"[]",
    b"3",
    b'{"jsonrpc":"2.0","id":null,"method":"x"}',
    b'{"id":7,"method":"roots/lists"}',
    b'{"jsonrpc":"2.0","method":"roots/list"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"x"}',
    b"[" * 100_000,
    UNREADABLE,
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
            assert desk.session.owes
            line = shape.format("x" * 50_000, json.dumps(id_)).encode()
            desk.server(line)
            assert desk.raw_to_client() == line + b"\n"
            assert not desk.session.owes


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
    desk.session.ended(RootsdError("the server has ended", "start it"))
    answers = desk.to_client()
    assert [(each["id"], each["error"]["code"]) for each in answers] == [
        (1, -32603), (2, -32603), (3, -32603),
    ]  # fmt: skip
    assert not desk.session.owes


def test_a_line_that_is_too_long_is_answered_as_far_as_it_can_be() -> None:
    desk = Desk(API)
    desk.shake_hands()
    desk.session.refuse_line()
    (refusal,) = desk.to_client()
    assert refusal["error"]["message"] == f"the line is longer than {LONGEST_LINE} bytes"
    desk.client(request(5, "tools/list"))
    desk.session.lose_answer(b'{"jsonrpc":"2.0","id":5,"result":"xxxx')
    (answer,) = desk.to_client()
    assert (answer["id"], answer["error"]["code"]) == (5, -32603)
    desk.session.lose_answer(b'{"jsonrpc":"2.0","method":"x"')
    assert desk.to_client() == []


def test_streams_are_nothing_that_a_client_waits_for() -> None:
    desk = Desk(API)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    desk.client(request(4, "subscriptions/listen", {"_meta": meta, "notifications": {}}))
    assert desk.session.owes
    opened = {"_meta": {"io.modelcontextprotocol/subscriptionId": 4}, "notifications": {}}
    desk.server(notice("notifications/subscriptions/acknowledged", opened))
    assert not desk.session.owes


def test_errors_and_unknown_answers_pass() -> None:
    desk = Desk(API)
    desk.shake_hands()
    for line in (fault(9, -32601), reply("never asked", {}), fault(None, -32700)):
        desk.server(line)
        assert desk.raw_to_client() == line
        desk.client(line)
        assert desk.raw_to_server() == line


def test_nothing_is_asked_of_a_client_that_is_ignored() -> None:
    desk = Desk(API, use=ClientRoots.OVERRIDE)
    desk.shake_hands({"roots": {"listChanged": True}})
    assert [each["id"] for each in messages(desk.raw_to_client())] == [0]


def test_what_the_server_was_told_is_noted() -> None:
    desk = Desk(API, WEB, here=b"/src/web")
    desk.shake_hands()
    assert desk.out.told is None
    desk.list_roots()
    assert desk.out.told == ("web",)
    started = Desk(API, words=("server", "{roots}"))
    assert started.out.told == ("api",)
