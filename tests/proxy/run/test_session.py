"""Sessions with a handshake: what passes, what does not, and in which order."""

from __future__ import annotations

import json

import pytest

from rootsd.proxy.run import router
from rootsd.proxy.run.readiness import ServerProfile
from support.bridges import INITIALIZE, notice, reply, request
from support.run_session_harness import API, DOCS, NOWHERE, WEB, SessionHarness, call, paths

CHANGED = "notifications/roots/list_changed"
UNREADABLE = b'{"jsonrpc":"2.0","id":1'


def test_initialize_declares_roots_and_is_otherwise_unchanged() -> None:
    harness = SessionHarness()
    line = (
        b'{ "id":0, "jsonrpc":"2.0","method":"initialize","params":{"n":1e400,"capabilities":'
        b'{"x":1.10}}}\n'
    )
    harness.client(line)
    roots = b'{"roots":{"listChanged": true},'
    assert harness.raw_to_server() == line.replace(b'{"x"', roots + b'"x"')


FOLDERS = {
    "roots": [{"uri": "file:///home/her/private"}],
    "rootUri": "file:///home/her/private",
    "rootPath": "/home/her/private",
    "root_path": "/home/her/private",
    "RootURI": "file:///home/her/private",
    "workspaceFolders": [{"uri": "file:///home/her/private", "name": "private"}],
    "_meta": {"x": {"workspaceFolders": ["/home/her/private"]}, "progressToken": 1},
    "initializationOptions": {"roots": ["/home/her/private"]},
}


def test_initialize_names_no_folder_of_the_client() -> None:
    harness = SessionHarness()
    experimental = {"roots": {"private": "/home/her/private"}, "n": 1}
    params = {**INITIALIZE, **FOLDERS, "capabilities": {"experimental": experimental}}
    line = request(0, "initialize", params).replace(b'"roots": [', b'"r\\u006fots": [', 1)
    harness.client(line)
    passed = harness.raw_to_server()
    assert b"private" not in passed
    assert json.loads(passed)["params"] == {
        **INITIALIZE,
        "capabilities": {"roots": {"listChanged": True}, "experimental": {"n": 1}},
        "_meta": {"x": {}, "progressToken": 1},
        "initializationOptions": {},
    }


def test_this_test_detects_a_folder_in_initialize(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "_without_folders", lambda line, _: line)
    with pytest.raises(AssertionError):
        test_initialize_names_no_folder_of_the_client()


@pytest.mark.parametrize("declared", [{}, {"listChanged": False}, {"listChanged": True}])
def test_list_changed_is_always_declared(declared: object) -> None:
    harness = SessionHarness()
    harness.client(request(0, "initialize", {"capabilities": {"roots": declared, "x": {}}}))
    (told,) = harness.to_server()
    assert told["params"]["capabilities"] == {"roots": {"listChanged": True}, "x": {}}


@pytest.mark.parametrize("params", [None, {}, {"capabilities": 3}, {"capabilities": None}])
def test_a_malformed_initialize_is_left_to_the_server(params: object) -> None:
    harness = SessionHarness()
    line = request(0, "initialize", params)
    harness.client(line)
    assert harness.raw_to_server() == line


@pytest.mark.parametrize("id_", [0, 1, "0", "", -7])
def test_a_roots_request_is_answered_under_its_id_without_the_client(id_: object) -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands()
    harness.client(request(id_, "ping"))  # the same id the other way round is no matter
    harness.raw_to_server()
    assert harness.list_roots(id_) == ["/src/api", "/src/web"]
    assert harness.raw_to_client() == b""


@pytest.mark.parametrize("profile", ServerProfile)
def test_a_slow_server_gets_its_roots_before_the_first_call(profile: ServerProfile) -> None:
    harness = SessionHarness(API, profile=profile)
    harness.client(
        request("i", "initialize", {"capabilities": {}}),
        notice("notifications/initialized"),
        call(1),
    )
    assert [each["method"] for each in harness.to_server()] == ["initialize"]
    harness.wait(60.0)
    assert (harness.raw_to_server(), harness.gate.profile) == (b"", profile), (
        "nothing is learnt yet"
    )
    harness.server(reply("i", {"capabilities": {}}))
    told = [each["method"] for each in harness.to_server()]
    if profile in (ServerProfile.SILENT, ServerProfile.IN_CALLS):
        assert told == ["notifications/initialized", "tools/call"]
        return
    assert told == ["notifications/initialized"]
    assert harness.list_roots() == ["/src/api"]
    assert [each["id"] for each in harness.to_server()] == [1]


@pytest.mark.parametrize("id_", ["i", None])
def test_after_a_refused_handshake_all_messages_pass(id_: str | None) -> None:
    harness = SessionHarness(API)
    harness.client(request("i", "initialize", {}), request(1, "tools/list"))
    harness.to_server()
    error = {"jsonrpc": "2.0", "id": id_, "error": {"code": -32700, "message": "cannot be read"}}
    harness.server(json.dumps(error).encode())
    assert [each["method"] for each in harness.to_server()] == ["tools/list"]


def test_the_clients_responses_pass_during_the_handshake() -> None:
    harness = SessionHarness(API)
    harness.client(request("i", "initialize", {}), request(1, "tools/list"))
    harness.server(request("p", "ping"))
    harness.raw_to_server()
    harness.client(reply("p", {}))
    assert [each["id"] for each in harness.to_server()] == ["p"]


def test_calls_wait_from_a_notification_until_the_server_has_the_roots() -> None:
    harness = SessionHarness(API, WEB, profile=ServerProfile.EARLY)
    harness.shake_hands()
    harness.list_roots()
    harness.announce()
    harness.client(call(1), request(2, "tools/list"))
    assert harness.raw_to_server() == b"", "what is behind the call waits behind it"
    harness.approve(API)
    assert harness.to_server() == [{"jsonrpc": "2.0", "method": CHANGED}]
    assert harness.list_roots() == ["/src/api"]
    assert [each["id"] for each in harness.to_server()] == [1, 2]


def test_calls_go_on_if_a_change_does_not_affect_the_server() -> None:
    harness = SessionHarness(API, profile=ServerProfile.EARLY)
    harness.shake_hands()
    harness.list_roots()
    harness.announce()
    harness.client(call(1))
    harness.approve(API)
    assert [each["id"] for each in harness.to_server()] == [1]


def test_a_roots_request_with_escapes_is_recognized() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.server(b'{"jsonrpc":"2.0","id":"\\u0078","method":"roots\\/list"}')
    (answer,) = harness.to_server()
    assert (answer["id"], paths(answer["result"])) == ("x", ["/src/api"])


def test_no_roots_are_sent_as_the_empty_folder() -> None:
    harness = SessionHarness()
    harness.shake_hands()
    assert harness.list_roots() == [NOWHERE.decode()]
    bare = SessionHarness(empty_folder=None)
    bare.shake_hands()
    assert bare.list_roots() == []


def test_only_a_server_that_reads_roots_is_notified_of_a_change() -> None:
    harness = SessionHarness(WEB)
    harness.shake_hands()
    harness.approve(API)
    assert harness.to_server() == []
    harness.list_roots()
    harness.approve(API, WEB)
    assert [each["method"] for each in harness.to_server()] == [CHANGED]
    assert harness.list_roots(1) == ["/src/api", "/src/web"]
    harness.approve(API, WEB)
    assert harness.to_server() == []


def test_every_answer_comes_from_a_new_query() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.list_roots()
    harness.is_daemon_there = False
    harness.server(request(5, "roots/list"))
    assert harness.to_server() == [], "what it said before is not enough"
    harness.approved, harness.is_daemon_there = (WEB,), True
    harness.client()
    changed, answer = harness.to_server()
    assert changed["method"] == CHANGED
    assert paths(answer["result"]) == ["/src/web"]


def test_calls_wait_for_the_roots_and_the_order_is_kept() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.client(request(1, "tools/list"))
    assert [each["id"] for each in harness.to_server()] == [1], "it needs no roots"
    harness.client(call(2), request(3, "tools/list"), notice("notifications/x"))
    assert harness.to_server() == []
    assert harness.session.backlog > 0
    harness.server(request("ping-1", "ping"))
    harness.client(reply("ping-1", {}))
    assert [each["id"] for each in harness.to_server()] == ["ping-1"], "the server may wait for it"
    harness.server(request(0, "roots/list"))
    assert [each["id"] for each in harness.to_server()] == [0]
    harness.wait(0.2)
    assert [each.get("id") for each in harness.to_server()] == [2, 3, None]
    assert harness.session.backlog == 0


def test_a_server_that_keeps_a_denied_root_is_restarted() -> None:
    harness = SessionHarness(API, WEB)
    harness.shake_hands()
    harness.list_roots()
    harness.approve(API, WEB, DOCS)
    harness.wait(2.0)
    assert not harness.out.restart_requested, "it may use less than it could: no harm"
    harness.approve(API)
    harness.client(call(1))
    harness.wait(2.0)
    harness.raw_to_server()
    harness.another()
    again, *_ = harness.to_server()
    assert again["method"] == "initialize"
    harness.server(reply(again["id"], {"capabilities": {}}))
    assert [each["method"] for each in harness.to_server()] == ["notifications/initialized"]
    assert harness.list_roots(0) == ["/src/api"]
    assert [each["id"] for each in harness.to_server()] == [1]
