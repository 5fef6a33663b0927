"""Servers that are restarted without the client's notice."""

from __future__ import annotations

import json

import pytest

from rootsd.proxy.run.readiness import ServerProfile
from rootsd.proxy.run.roots import RootFolder
from rootsd.wire.roots_subscription import RootsUpdate
from support.bridges import META_2026, notice, reply, request
from support.run_session_harness import API, DOCS, NOWHERE, WEB, SessionHarness, call, call_2026

WORDS = ("server", "{roots}")
GONE = RootFolder(b"/src/gone", "gone")


def renewed(
    harness: SessionHarness, capabilities: object = None, *, makes_call: bool = True
) -> list[dict[str, object]]:
    """Make a call, which starts the next server; what it is told after its handshake."""
    exchange(harness) if makes_call else harness.another()
    greeting, *early = harness.to_server()
    assert greeting["method"] == "initialize"
    assert greeting["params"]["capabilities"] == {"roots": {"listChanged": True}}
    assert early == []
    harness.server(reply(greeting["id"], {"capabilities": capabilities or {}}))
    harness.wait(1)  # whether this one asks for roots may not be known yet
    return [each for each in harness.to_server() if each.get("id") != "next"]


def exchange(harness: SessionHarness) -> None:
    """Make a call, with which another server is started."""
    harness.client(call("next"))
    harness.wait(1)
    harness.raw_to_server()
    harness.another()


def test_any_number_of_changes_cause_one_restart_at_the_next_call() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    for number in range(10):
        harness.approve(API, *[WEB._replace(path=b"/src/%d" % n) for n in range(number + 1)])
        harness.client(request(number, "tools/list"))
        harness.wait(1)
        assert not harness.out.restart_requested
    harness.client(call("now"))
    assert len(harness.another().words) == 12


def test_without_a_daemon_calls_fail_and_the_server_stays_as_it_is() -> None:
    for words in (WORDS, ("server", "{root}")):
        harness = SessionHarness(API, words=words)
        harness.shake_hands()
        harness.wait(2)
        harness.raw_to_server()
        nothing = RootsUpdate[RootFolder]((), 1, is_known=False)
        harness.session.roots_updated(nothing._replace(requests=0), harness.now)
        harness.is_daemon_there = False
        harness.client(call(1))
        assert harness.to_client() == [], "a daemon may be there again"
        harness.session.roots_updated(nothing, harness.now)
        (answer,) = harness.to_client()
        assert "rootsd does not answer" in answer["error"]["message"]
        harness.is_daemon_there = True
        harness.approve(API)
        harness.client(call(2))
        assert [each["id"] for each in harness.to_server()] == [2]
        harness.server(reply(2, {}))
        harness.approve()  # a daemon says so
        harness.client(call(3))
        assert harness.another().words[1] == NOWHERE.decode()


def without_daemon(harness: SessionHarness) -> None:
    """Let the last daemon end."""
    harness.is_daemon_there = False
    harness.session.roots_updated(RootsUpdate((), 0, is_known=False), harness.now)


def no_daemon_found(harness: SessionHarness) -> list[object]:
    """Answer all queries as without a daemon, and return the ids of refused calls."""
    queries, harness.out.roots_queries = harness.out.roots_queries, 0
    for _ in range(queries):
        harness.session.roots_updated(RootsUpdate((), 1, is_known=False), harness.now)
    return [each["id"] for each in harness.to_client() if "error" in each]


def test_a_look_for_a_daemon_that_a_lost_server_drops_holds_no_later_call() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    without_daemon(harness)
    harness.client(call(1))
    assert harness.session.server_exited()
    assert [each["id"] for each in harness.to_client()] == [1]
    harness.is_daemon_there = True
    harness.approve(API)
    harness.wait(1)
    renewed(harness, makes_call=False)
    no_daemon_found(harness)
    without_daemon(harness)
    harness.client(call(2))
    assert harness.out.roots_queries
    assert no_daemon_found(harness) == [2]


def test_a_held_call_looks_again_for_a_daemon_after_a_revoke_ended_the_server() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    without_daemon(harness)
    harness.client(call(1))
    harness.session.server_revoked()
    harness.approve(API)
    harness.another()
    without_daemon(harness)
    harness.server(reply(harness.to_server()[0]["id"], {"capabilities": {}}))
    harness.wait(1)
    while harness.out.roots_queries:
        refused = no_daemon_found(harness)
    assert refused == [1]


def test_a_look_for_a_daemon_ends_with_the_call_that_was_canceled() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    without_daemon(harness)
    harness.client(call(1), notice("notifications/cancelled", {"requestId": 1}))
    assert no_daemon_found(harness) == []
    harness.wait(3600)
    harness.client(call(2))
    assert harness.to_client() == [], "a daemon may be there again"
    assert no_daemon_found(harness) == [2]


def test_a_missing_folder_causes_no_restart() -> None:
    for given in ((API, GONE), (API,)):
        harness = SessionHarness(*given, words=WORDS)
        harness.shake_hands()
        harness.wait(2)
        harness.raw_to_server()
        harness.approve(API)
        harness.client(call(1))
        assert [each["id"] for each in harness.to_server()] == [1]


@pytest.mark.parametrize("fewer", [True, False])
def test_a_restart_waits_for_a_call_in_flight(fewer: bool) -> None:
    harness = SessionHarness(API, WEB, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    harness.client(call(1), request(2, "tools/list"))
    harness.raw_to_server()
    harness.approve(*((API,) if fewer else (API, WEB, DOCS)))
    harness.client(call(3))
    harness.wait(1)
    assert not harness.out.restart_requested
    assert harness.raw_to_server() == b""
    harness.server(reply(1, {"x": 1}))
    assert harness.out.restart_requested
    assert [each["id"] for each in harness.to_client()] == [1]
    told = renewed(harness, makes_call=False)
    assert [each.get("id") for each in told] == [None, 2, 3], "it is known to read no roots"
    assert harness.session.backlog == 0
    told_client = [each.get("method") for each in harness.to_client()]
    assert told_client == ["notifications/tools/list_changed"], "the answer to initialize is ours"


def test_an_endless_call_holds_the_next_one_for_a_bounded_time() -> None:
    harness = SessionHarness(API, WEB, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    harness.client(call("endless"))
    harness.raw_to_server()
    harness.approve(API, WEB, DOCS)
    harness.client(call(1))
    harness.wait(2)
    assert [each["id"] for each in harness.to_server()] == [1], (
        "the server lacks a folder: no harm"
    )
    harness.server(reply(1, {}))
    harness.raw_to_client()
    harness.approve(API)
    harness.client(call(2), call(3))
    harness.wait(2)
    assert harness.raw_to_server() == b""
    refused = harness.to_client()
    assert [(each["id"], each["error"]["code"]) for each in refused] == [(2, -32603), (3, -32603)]
    assert "cancel" in refused[0]["error"]["message"]
    harness.client(call(4), notice("notifications/cancelled", {"requestId": "endless"}))
    assert harness.another().words == ("server", "/src/api"), "nothing is in flight any more"


@pytest.mark.parametrize("profile", ServerProfile)
def test_a_call_waits_for_a_server_with_the_roots_of_the_wall(profile: ServerProfile) -> None:
    harness = SessionHarness(API, profile=profile)
    harness.shake_hands()
    harness.wait(6)
    harness.raw_to_server()
    harness.restart_policy.wall_is_outdated = lambda: True
    harness.client(request(1, "tools/list"))
    assert [each["id"] for each in harness.to_server()] == [1], "it needs no roots"
    harness.server(reply(1, {}))
    harness.client(call(2))
    assert harness.out.restart_requested
    harness.restart_policy.wall_is_outdated = lambda: False
    told = renewed(harness, makes_call=False)
    assert [each["id"] for each in told if "id" in each] == [2]


def test_a_busy_server_that_lacks_a_root_of_the_wall_gets_no_call() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.wait(2)
    harness.client(call("endless"))
    harness.raw_to_server()
    harness.restart_policy.wall_is_outdated = lambda: True
    harness.client(call(1))
    harness.wait(2)
    assert harness.raw_to_server() == b""
    assert [(each["id"], each["error"]["code"]) for each in harness.to_client()] == [(1, -32603)]


def test_a_revoke_that_ends_the_server_fails_the_calls_in_flight() -> None:
    harness = SessionHarness(API)
    harness.shake_hands()
    harness.wait(2)
    harness.client(call(1), request(2, "tools/list"))
    harness.raw_to_server()
    harness.session.server_revoked()
    (failed,) = harness.to_client()
    assert failed["id"] == 1
    assert "was restarted" in failed["error"]["message"]
    told = renewed(harness, makes_call=False)
    assert [each["id"] for each in told if "id" in each] == [2]


def test_a_restart_does_not_wait_for_a_call_about_a_denied_folder() -> None:
    harness = SessionHarness(API, WEB, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    harness.client(call("old", arguments={"path": "/src/web/x"}))
    harness.approve(API)
    harness.client(call(1))
    (failed,) = harness.to_client()
    assert (failed["id"], failed["error"]["code"]) == ("old", -32603)
    assert "was restarted" in failed["error"]["message"]
    assert harness.another().words == ("server", "/src/api")


def test_log_level_and_subscriptions_are_replayed_with_hidden_responses() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.client(
        request(1, "logging/setLevel", {"level": "debug"}),
        request(2, "resources/subscribe", {"uri": "x://1"}),
        request(3, "resources/subscribe", {"uri": "x://2"}),
        request(4, "resources/subscribe", {"uri": "x://refused"}),
        request(5, "resources/unsubscribe", {"uri": "x://2"}),
    )
    harness.server(*(reply(id_, {}) for id_ in (1, 2, 3, 5)))
    harness.server(b'{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"no"}}')
    harness.raw_to_client()
    harness.approve()
    told = renewed(harness)
    assert [each["method"] for each in told] == [
        "notifications/initialized", "logging/setLevel", "resources/subscribe",
    ]  # fmt: skip
    assert told[2]["params"] == {"uri": "x://1"}
    harness.server(*(reply(each["id"], {}) for each in told[1:]))
    assert [each["method"] for each in harness.to_client()] == [
        "notifications/tools/list_changed", "notifications/resources/updated",
    ]  # fmt: skip


def test_streams_are_reopened_and_get_change_notifications() -> None:
    harness = SessionHarness(API, words=WORDS)
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["x://1"]}
    listen = request(1, "subscriptions/listen", {"_meta": META_2026, "notifications": wanted})
    harness.client(listen)
    opened = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}, "notifications": wanted}
    acknowledged = notice("notifications/subscriptions/acknowledged", opened)
    harness.server(acknowledged)
    assert harness.raw_to_client() == acknowledged
    harness.approve()
    assert harness.to_client() == [], "the stream goes on"
    exchange(harness)
    again, _ = harness.to_server()
    assert (again["method"], again["id"]) == ("subscriptions/listen", 1)
    harness.server(reply("next", {}))
    harness.raw_to_client()
    harness.server(acknowledged)
    news = harness.to_client()
    assert [each["method"] for each in news] == [
        "notifications/tools/list_changed", "notifications/resources/updated",
    ]  # fmt: skip
    assert [each["params"]["_meta"] for each in news] == [opened["_meta"]] * 2
    assert news[1]["params"]["uri"] == "x://1"
    harness.client(notice("notifications/cancelled", {"requestId": 1}))
    harness.approve(WEB)
    harness.wait(1)
    exchange(harness)
    assert [each["id"] for each in harness.to_server()] == ["next"]


def test_a_2026_session_has_no_handshake_to_replay() -> None:
    harness = SessionHarness(API, WEB, words=WORDS)
    harness.client(call_2026(1))
    harness.server(reply(1, {}))
    harness.raw_to_server()
    harness.approve(API)
    harness.client(call_2026(2))
    harness.another()
    assert [each["id"] for each in harness.to_server()] == [2]


def test_requests_of_the_old_server_are_cancelled() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands({"sampling": {}})
    harness.raw_to_client()
    harness.server(request(0, "sampling/createMessage", {"n": 1}))
    harness.raw_to_client()
    harness.approve()
    exchange(harness)
    (cancelled,) = harness.to_client()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": 0}
    (greeting,) = harness.to_server()
    harness.server(reply(greeting["id"], {"capabilities": {}}))
    harness.raw_to_server()
    harness.raw_to_client()
    harness.server(request(0, "sampling/createMessage", {"n": 2}))
    (asked,) = harness.to_client()
    assert asked["id"] != 0, "the client may still answer the other one"
    harness.client(reply(0, {"n": 1}))
    assert harness.to_server() == []
    harness.client(reply(asked["id"], {"n": 2}))
    (answer,) = harness.to_server()
    assert (answer["id"], answer["result"]) == (0, {"n": 2})


def test_a_change_during_a_restart_causes_another_restart() -> None:
    harness = SessionHarness(API, WEB, DOCS, words=WORDS)
    harness.shake_hands()
    harness.approve(API, WEB)
    exchange(harness)
    assert harness.launch.words == ("server", "/src/api", "/src/web")
    (greeting,) = harness.to_server()
    harness.approve()
    harness.server(reply(greeting["id"], {"capabilities": {}}))
    harness.wait(1)
    harness.raw_to_server()
    assert harness.another().words == ("server", "/run/nowhere")
    (second,) = harness.to_server()
    assert second["id"] != greeting["id"]
    harness.server(reply(second["id"], {"capabilities": {}}))
    harness.wait(1)
    assert [each["method"] for each in harness.to_server()] == [
        "notifications/initialized", "tools/call",
    ]  # fmt: skip


def test_a_roots_request_of_the_old_server_is_dropped() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.wait(2)
    harness.is_daemon_there = False
    harness.server(request(3, "roots/list"))
    harness.approve()
    exchange(harness)
    (greeting,) = harness.to_server()
    harness.is_daemon_there = True
    harness.server(reply(greeting["id"], {"capabilities": {}}))
    assert all("result" not in each for each in harness.to_server())
    harness.server(request(9, "roots/list"))
    answer, *_ = harness.to_server()
    assert answer["id"] == 9


@pytest.mark.parametrize("order", [True, False])
def test_roots_in_the_command_decide_over_roots_that_are_read(order: bool) -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.list_roots()
    harness.approve(API, WEB) if order else harness.approve()
    assert harness.to_server() == []
    harness.wait(1)
    told = renewed(harness)
    assert json.dumps(told).count("initialized") == 1


def test_the_session_survives_a_server_that_exits_without_roots() -> None:
    harness = SessionHarness(API, words=WORDS)
    harness.shake_hands()
    harness.client(request(1, "tools/list"))
    harness.approve()
    exchange(harness)
    harness.raw_to_client()
    harness.server(reply(1, {}))
    harness.raw_to_client()
    assert harness.session.server_exited()
    harness.client(call(2), request(3, "tools/list"), notice("notifications/x"), reply("old", {}))
    refused = harness.to_client()
    assert [each["id"] for each in refused] == ["next", 2, 3]
    assert "no folder is approved" in refused[0]["error"]["message"]
    harness.raw_to_server()
    harness.approve(WEB)
    harness.client(call(4))
    assert harness.to_client() == [], "it waits for the server of the new root"
    harness.wait(1)
    told = renewed(harness, makes_call=False)
    assert [each.get("id") for each in told] == [None, 4]
    assert harness.launch.words == ("server", "/src/web")


def test_a_server_that_exits_for_another_reason_ends_the_session() -> None:
    assert not SessionHarness(API, words=WORDS).session.server_exited()
    assert not SessionHarness().session.server_exited()
