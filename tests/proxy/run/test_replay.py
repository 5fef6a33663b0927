"""What the next server gets. test_session_restarted.py tests whole sessions."""

from __future__ import annotations

from itertools import count

from rootsd.proxy.run.replay import Replay
from rootsd.wire.jsonrpc import Notification, Request, encode
from support.bridges import request

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def ids() -> count[int]:
    return count(100)


def test_an_empty_session_replays_nothing() -> None:
    replay = Replay()
    assert replay.handshake is None
    assert list(replay.after_handshake(map(str, ids()))) == []
    assert list(replay.open_requests()) == list(replay.change_notifications()) == []


def test_an_accepted_handshake_is_replayed_as_the_server_got_it() -> None:
    replay = Replay()
    asked = Request(0, "initialize", {"capabilities": {}})
    replay.request_sent(asked, b"as it was sent")
    assert replay.handshake is None
    assert list(replay.open_requests()) == [b"as it was sent\n"]
    replay.response_received(
        asked, {"capabilities": {"prompts": {"listChanged": True}, "tools": {}}}
    )
    replay.request_closed(0)
    assert replay.handshake == b"as it was sent"
    assert list(replay.open_requests()) == []
    replay.initialized = True
    assert list(replay.after_handshake(map(str, ids()))) == [
        Notification("notifications/initialized")
    ]
    assert list(replay.change_notifications()) == [
        encode(Notification("notifications/prompts/list_changed"))
    ]


def test_only_safe_requests_are_replayed() -> None:
    replay = Replay()
    for id_, method in enumerate(("tools/list", "tools/call", "ping", "x/y")):
        replay.request_sent(Request(id_, method), request(id_, method).strip())
    assert [replay.will_replay(id_) for id_ in range(4)] == [True, False, True, False]
    replay.request_closed(2)
    assert list(replay.open_requests()) == [request(0, "tools/list")]


def test_a_stream_is_acknowledged_to_the_client_once() -> None:
    replay = Replay()
    opened = Notification(ACKNOWLEDGED, {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}})
    assert not replay.is_repeated_acknowledgment(opened), "nobody's"
    replay.request_sent(Request(1, "subscriptions/listen"), b"listen")
    assert not replay.is_repeated_acknowledgment(opened)
    assert replay.is_stream(1)
    assert replay.is_repeated_acknowledgment(opened)
    replay.request_closed(1)
    assert not replay.is_stream(1)
    assert not replay.is_repeated_acknowledgment(opened)
    assert not replay.is_repeated_acknowledgment(Notification("notifications/x", opened.params))
