"""Sessions of the handshake era: what passes, what does not, and in which order."""

from __future__ import annotations

import json

import pytest

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.roots import AccessPolicy, RootFolder
from support.bridges import notice, reply, request
from support.relaying import API, DOCS, NOWHERE, WEB, Desk, call, paths

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


@pytest.mark.parametrize("params", [None, {}, {"capabilities": 3}, {"capabilities": None}])
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


@pytest.mark.parametrize("profile", ServerProfile)
def test_a_slow_server_has_its_roots_before_the_call_that_came_with_the_handshake(
    profile: ServerProfile,
) -> None:
    desk = Desk(API, profile=profile)
    desk.client(
        request("i", "initialize", {"capabilities": {}}),
        notice("notifications/initialized"),
        call(1),
    )
    assert [each["method"] for each in desk.to_server()] == ["initialize"]
    desk.wait(60.0)
    assert (desk.raw_to_server(), desk.gate.profile) == (b"", profile), "nothing is learnt yet"
    desk.server(reply("i", {"capabilities": {}}))
    told = [each["method"] for each in desk.to_server()]
    if profile in (ServerProfile.SILENT, ServerProfile.IN_CALLS):
        assert told == ["notifications/initialized", "tools/call"]
        return
    assert told == ["notifications/initialized"]
    assert desk.list_roots() == ["/src/api"]
    assert [each["id"] for each in desk.to_server()] == [1]


@pytest.mark.parametrize("id_", ["i", None])
def test_a_server_that_refuses_the_handshake_is_told_all_that_follows(id_: str | None) -> None:
    desk = Desk(API)
    desk.client(request("i", "initialize", {}), request(1, "tools/list"))
    desk.to_server()
    error = {"jsonrpc": "2.0", "id": id_, "error": {"code": -32700, "message": "cannot be read"}}
    desk.server(json.dumps(error).encode())
    assert [each["method"] for each in desk.to_server()] == ["tools/list"]


def test_a_client_may_answer_what_it_is_asked_during_the_handshake() -> None:
    desk = Desk(API)
    desk.client(request("i", "initialize", {}), request(1, "tools/list"))
    desk.server(request("p", "ping"))
    desk.raw_to_server()
    desk.client(reply("p", {}))
    assert [each["id"] for each in desk.to_server()] == ["p"]


def test_calls_wait_from_the_news_of_a_change_until_the_server_knows_it() -> None:
    desk = Desk(API, WEB, profile=ServerProfile.EARLY)
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
    desk = Desk(API, profile=ServerProfile.EARLY)
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
    bare = Desk(empty_folder=None)
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
    desk.server(request("ping-1", "ping"))
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
    assert not desk.out.restart_requested, "it may use less than it could: no harm"
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
    read = RootFolder(b"/src/read", "read", writable=False)
    for access, expected in (
        (AccessPolicy.WRITABLE, ["/src/api"]),
        (AccessPolicy.ADVISORY, ["/src/api", "/src/read"]),
    ):
        desk = Desk(API, read, access=access)
        desk.shake_hands()
        assert desk.list_roots() == expected
