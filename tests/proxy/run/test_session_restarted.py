"""Servers that are started again, and clients that do not notice."""

from __future__ import annotations

import json

import pytest

from rootsd.proxy.run.roots import RootFolder
from support.bridges import META_2026, notice, reply, request
from support.relaying import API, DOCS, WEB, Desk, call, call_2026

WORDS = ("server", "{roots}")
GONE = RootFolder(b"/src/gone", "gone")


def renewed(
    desk: Desk, capabilities: object = None, *, makes_call: bool = True
) -> list[dict[str, object]]:
    """Make a call, which starts the next server; what it is told after its handshake."""
    exchange(desk) if makes_call else desk.another()
    greeting, *early = desk.to_server()
    assert greeting["method"] == "initialize"
    assert greeting["params"]["capabilities"] == {"roots": {"listChanged": True}}
    assert early == []
    desk.server(reply(greeting["id"], {"capabilities": capabilities or {}}))
    desk.wait(1)  # whether this one asks for roots may not be known yet
    return [each for each in desk.to_server() if each.get("id") != "next"]


def exchange(desk: Desk) -> None:
    """Make a call, with which another server is started."""
    desk.client(call("next"))
    desk.wait(1)
    desk.raw_to_server()
    desk.another()


def test_any_number_of_changes_start_one_server_at_the_next_call() -> None:
    desk = Desk(API, words=WORDS)
    desk.shake_hands()
    for number in range(10):
        desk.approve(API, *[WEB._replace(path=b"/src/%d" % n) for n in range(number + 1)])
        desk.client(request(number, "tools/list"))
        desk.wait(1)
        assert not desk.out.restart_requested
    desk.client(call("now"))
    assert len(desk.another().words) == 12


def test_a_change_that_is_taken_back_before_the_next_call_starts_no_server() -> None:
    desk = Desk(API, WEB, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.raw_to_server()
    desk.approve(API)
    desk.approve(API, WEB)
    desk.client(call(1))
    assert [each["id"] for each in desk.to_server()] == [1]


def test_a_folder_that_is_gone_or_was_never_there_starts_no_server() -> None:
    for given in ((API, GONE), (API,)):
        desk = Desk(*given, words=WORDS)
        desk.shake_hands()
        desk.wait(2)
        desk.raw_to_server()
        desk.approve(API)
        desk.client(call(1))
        assert [each["id"] for each in desk.to_server()] == [1]


def test_what_is_added_besides_a_folder_that_is_gone_starts_one() -> None:
    desk = Desk(API, GONE, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.approve(API, WEB)
    desk.client(call(1))
    assert desk.another().words == ("server", "/src/api", "/src/web")


@pytest.mark.parametrize("fewer", [True, False])
def test_a_call_in_flight_does_not_fail_and_the_next_one_waits_for_it(fewer: bool) -> None:
    desk = Desk(API, WEB, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.client(call(1), request(2, "tools/list"))
    desk.raw_to_server()
    desk.approve(*((API,) if fewer else (API, WEB, DOCS)))
    desk.client(call(3))
    desk.wait(1)
    assert not desk.out.restart_requested
    assert desk.raw_to_server() == b""
    desk.server(reply(1, {"x": 1}))
    assert desk.out.restart_requested
    assert [each["id"] for each in desk.to_client()] == [1]
    told = renewed(desk, makes_call=False)
    assert [each.get("id") for each in told] == [None, 2, 3]
    told_client = [each.get("method") for each in desk.to_client()]
    assert told_client == ["notifications/tools/list_changed"], "the answer to initialize is ours"


def test_a_call_that_never_ends_holds_the_next_one_for_a_bounded_time() -> None:
    desk = Desk(API, WEB, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.client(call("endless"))
    desk.raw_to_server()
    desk.approve(API, WEB, DOCS)
    desk.client(call(1))
    desk.wait(2)
    assert [each["id"] for each in desk.to_server()] == [1], "the server lacks a folder: no harm"
    desk.server(reply(1, {}))
    desk.raw_to_client()
    desk.approve(API)
    desk.client(call(2), call(3))
    desk.wait(2)
    assert desk.raw_to_server() == b""
    refused = desk.to_client()
    assert [(each["id"], each["error"]["code"]) for each in refused] == [(2, -32603), (3, -32603)]
    assert "cancel" in refused[0]["error"]["message"]
    desk.client(call(4), notice("notifications/cancelled", {"requestId": "endless"}))
    assert desk.another().words == ("server", "/src/api"), "nothing is in flight any more"


def test_a_call_about_a_folder_that_was_denied_is_not_waited_for() -> None:
    desk = Desk(API, WEB, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.client(call("old", arguments={"path": "/src/web/x"}))
    desk.approve(API)
    desk.client(call(1))
    (failed,) = desk.to_client()
    assert (failed["id"], failed["error"]["code"]) == ("old", -32603)
    assert "was restarted" in failed["error"]["message"]
    assert desk.another().words == ("server", "/src/api")


def test_calls_wait_for_the_next_server() -> None:
    desk = Desk(API, WEB, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.approve(API)
    desk.client(call(5), request(6, "tools/list"))
    told = renewed(desk, makes_call=False)
    assert [each.get("id") for each in told] == [None, 5, 6], "it is known to read no roots"
    assert desk.session.backlog == 0


def test_level_and_subscriptions_are_told_again_and_their_answers_kept() -> None:
    desk = Desk(API, words=WORDS)
    desk.shake_hands()
    desk.client(
        request(1, "logging/setLevel", {"level": "debug"}),
        request(2, "resources/subscribe", {"uri": "x://1"}),
        request(3, "resources/subscribe", {"uri": "x://2"}),
        request(4, "resources/subscribe", {"uri": "x://refused"}),
        request(5, "resources/unsubscribe", {"uri": "x://2"}),
    )
    desk.server(*(reply(id_, {}) for id_ in (1, 2, 3, 5)))
    desk.server(b'{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"no"}}')
    desk.raw_to_client()
    desk.approve()
    told = renewed(desk)
    assert [each["method"] for each in told] == [
        "notifications/initialized", "logging/setLevel", "resources/subscribe",
    ]  # fmt: skip
    assert told[2]["params"] == {"uri": "x://1"}
    desk.server(*(reply(each["id"], {}) for each in told[1:]))
    assert [each["method"] for each in desk.to_client()] == [
        "notifications/tools/list_changed", "notifications/resources/updated",
    ]  # fmt: skip


def test_streams_are_opened_again_unseen_and_told_that_all_may_have_changed() -> None:
    desk = Desk(API, words=WORDS)
    wanted = {"toolsListChanged": True}
    listen = request(1, "subscriptions/listen", {"_meta": META_2026, "notifications": wanted})
    desk.client(listen)
    opened = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}, "notifications": wanted}
    acknowledged = notice("notifications/subscriptions/acknowledged", opened)
    desk.server(acknowledged)
    assert desk.raw_to_client() == acknowledged
    desk.approve()
    assert desk.to_client() == [], "the stream goes on"
    exchange(desk)
    again, _ = desk.to_server()
    assert (again["method"], again["id"]) == ("subscriptions/listen", 1)
    desk.server(reply("next", {}))
    desk.raw_to_client()
    desk.server(acknowledged)
    (news,) = desk.to_client()
    assert news["method"] == "notifications/tools/list_changed"
    desk.client(notice("notifications/cancelled", {"requestId": 1}))
    desk.approve(WEB)
    desk.wait(1)
    exchange(desk)
    assert [each["id"] for each in desk.to_server()] == ["next"]


def test_in_2026_there_is_no_handshake_to_repeat() -> None:
    desk = Desk(API, WEB, words=WORDS)
    desk.client(call_2026(1))
    desk.server(reply(1, {}))
    desk.raw_to_server()
    desk.approve(API)
    desk.client(call_2026(2))
    desk.another()
    assert [each["id"] for each in desk.to_server()] == [2]


def test_what_the_old_server_asked_is_called_off_and_no_answer_reaches_the_new_one() -> None:
    desk = Desk(API, words=WORDS)
    desk.shake_hands({"sampling": {}})
    desk.raw_to_client()
    desk.server(request(0, "sampling/createMessage", {"n": 1}))
    desk.raw_to_client()
    desk.approve()
    exchange(desk)
    (cancelled,) = desk.to_client()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": 0}
    (greeting,) = desk.to_server()
    desk.server(reply(greeting["id"], {"capabilities": {}}))
    desk.raw_to_server()
    desk.raw_to_client()
    desk.server(request(0, "sampling/createMessage", {"n": 2}))
    (asked,) = desk.to_client()
    assert asked["id"] != 0, "the client may still answer the other one"
    desk.client(reply(0, {"n": 1}))
    assert desk.to_server() == []
    desk.client(reply(asked["id"], {"n": 2}))
    (answer,) = desk.to_server()
    assert (answer["id"], answer["result"]) == (0, {"n": 2})


def test_roots_that_change_while_a_server_starts_start_another_before_the_call() -> None:
    desk = Desk(API, WEB, DOCS, words=WORDS)
    desk.shake_hands()
    desk.approve(API, WEB)
    exchange(desk)
    assert desk.launch.words == ("server", "/src/api", "/src/web")
    (greeting,) = desk.to_server()
    desk.approve()
    desk.server(reply(greeting["id"], {"capabilities": {}}))
    desk.wait(1)
    desk.raw_to_server()
    assert desk.another().words == ("server", "/run/nowhere")
    (second,) = desk.to_server()
    assert second["id"] != greeting["id"]
    desk.server(reply(second["id"], {"capabilities": {}}))
    desk.wait(1)
    assert [each["method"] for each in desk.to_server()] == [
        "notifications/initialized", "tools/call",
    ]  # fmt: skip


def test_a_wish_of_a_server_that_is_gone_is_not_granted_to_the_next_one() -> None:
    desk = Desk(API, words=WORDS)
    desk.shake_hands()
    desk.wait(2)
    desk.is_daemon_there = False
    desk.server(request(3, "roots/list"))
    desk.approve()
    exchange(desk)
    (greeting,) = desk.to_server()
    desk.is_daemon_there = True
    desk.server(reply(greeting["id"], {"capabilities": {}}))
    assert all("result" not in each for each in desk.to_server())
    desk.server(request(9, "roots/list"))
    answer, *_ = desk.to_server()
    assert answer["id"] == 9


@pytest.mark.parametrize("order", [True, False])
def test_a_server_that_reads_roots_besides_is_asked_by_its_command_alone(order: bool) -> None:
    desk = Desk(API, words=WORDS)
    desk.shake_hands()
    desk.list_roots()
    desk.approve(API, WEB) if order else desk.approve()
    assert desk.to_server() == []
    desk.wait(1)
    told = renewed(desk)
    assert json.dumps(told).count("initialized") == 1


def test_a_server_that_ends_for_want_of_roots_is_not_the_end() -> None:
    desk = Desk(API, words=WORDS)
    desk.shake_hands()
    desk.client(request(1, "tools/list"))
    desk.approve()
    exchange(desk)
    desk.raw_to_client()
    desk.server(reply(1, {}))
    desk.raw_to_client()
    assert desk.session.server_exited()
    desk.client(call(2), request(3, "tools/list"), notice("notifications/x"), reply("old", {}))
    refused = desk.to_client()
    assert [each["id"] for each in refused] == ["next", 2, 3]
    assert "no folder is approved" in refused[0]["error"]["message"]
    desk.raw_to_server()
    desk.approve(WEB)
    desk.wait(1)
    told = renewed(desk, makes_call=False)
    assert [each["method"] for each in told] == ["notifications/initialized"]
    assert desk.launch.words == ("server", "/src/web")


def test_a_call_that_comes_after_a_root_and_before_its_server_waits_for_that() -> None:
    desk = Desk(words=WORDS)
    desk.shake_hands()
    assert desk.session.server_exited()
    desk.approve(WEB)
    desk.client(call(1))
    assert desk.to_client() == []
    desk.wait(1)
    told = renewed(desk, makes_call=False)
    assert [each.get("id") for each in told] == [None, 1]


def test_one_that_ends_with_roots_or_without_a_wish_for_them_has_ended() -> None:
    assert not Desk(API, words=WORDS).session.server_exited()
    assert not Desk().session.server_exited()
