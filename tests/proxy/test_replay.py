"""What the next daemon or server gets. Whole sessions: bridge/test_session.py for daemons,
run/test_session_restarted.py for servers.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from rootsd.proxy.replay import RepeatPolicy, Replay
from rootsd.wire.jsonrpc import Id, Notification, Request, encode

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
POLICY = RepeatPolicy(
    frozenset({"initialize", "ping", "subscriptions/listen"}), max_sends=3, max_held_bytes=1_000
)


def ids() -> map[str]:
    return map(str, count(100))


def sent(*requests: Request, policy: RepeatPolicy = POLICY) -> Replay:
    """Return a session whose requests a server has."""
    replay = Replay(policy)
    for request in requests:
        replay.request_sent(request, encode(request))
    return replay


def answer(replay: Replay, id_: Id, result: object) -> None:
    entry = replay.close(id_)
    assert entry is not None
    replay.learn(entry, result)


def ids_of(lines: bytes) -> list[Any]:
    return [json.loads(line)["id"] for line in lines.splitlines()]


def closed_ids(replay: Replay) -> list[Id]:
    return [entry.request.id for entry in replay.close_unrepeatable()]


def test_an_accepted_handshake_is_replayed_as_it_was_sent_under_another_id() -> None:
    replay = Replay(POLICY)
    line = b'{"jsonrpc": "2.0", "id":0,"method":"initialize", "params":{"capabilities":{}}}\n'
    replay.request_sent(Request(0, "initialize", {"capabilities": {}}), line)
    assert replay.handshake("again") is None
    assert replay.repeat() == line
    capabilities = {"prompts": {"listChanged": True}, "tools": {}}
    answer(replay, 0, {"protocolVersion": "2025-11-25", "capabilities": capabilities})
    assert replay.handshake("again") == line.replace(b'"id":0', b'"id":"again"')
    assert replay.protocol_version == "2025-11-25"
    assert replay.repeat() == b""
    replay.initialized = True
    assert list(replay.after_handshake(ids())) == [Notification("notifications/initialized")]
    assert list(replay.change_notifications()) == [
        encode(Notification("notifications/prompts/list_changed"))
    ]


def test_only_requests_that_the_policy_allows_are_sent_again() -> None:
    replay = sent(Request(0, "ping"), Request(1, "tools/call"), Request(2, "ping"))
    assert closed_ids(replay) == [1]
    replay.close(2)
    assert ids_of(replay.repeat()) == [0]


def test_requests_keep_their_order_and_id_types() -> None:
    replay = sent(*(Request(id_, "ping") for id_ in (1, "1", 0, "")))
    assert replay.close("1")
    assert replay.close("1") is None
    assert ids_of(replay.repeat()) == [1, 0, ""]


def test_a_duplicate_id_belongs_to_the_first_request() -> None:
    replay = Replay(POLICY)
    first = replay.request_sent(Request(1, "ping"), b"ping\n")
    assert replay.request_sent(Request(1, "unheard/of"), b"other\n") is first
    assert closed_ids(replay) == []


def test_a_request_is_sent_as_often_as_the_policy_allows() -> None:
    replay = sent(Request(1, "ping"))
    for _ in range(2):
        assert closed_ids(replay) == []
        assert ids_of(replay.repeat()) == [1]
    assert closed_ids(replay) == [1]


def test_an_undelivered_request_is_always_sent() -> None:
    replay = Replay(POLICY)
    request = Request(1, "unheard/of")
    replay.request_queued(request, encode(request))
    assert closed_ids(replay) == []
    assert ids_of(replay.repeat()) == [1]
    assert closed_ids(replay) == [1]


def test_it_is_full_by_count_or_size_until_requests_are_closed() -> None:
    replay = Replay(POLICY._replace(max_held=2))
    for id_ in range(2):
        assert not replay.is_full
        replay.request_queued(Request(id_, "ping"), b"x")
    assert replay.is_full
    replay.close(0)
    assert not replay.is_full
    replay.request_queued(Request(2, "ping"), b"x" * 999)
    replay.close(1)
    assert not replay.is_full
    replay.request_queued(Request(3, "ping"), b"x")
    assert replay.is_full
    replay.close(2)
    assert not replay.is_full


def test_a_request_too_long_to_keep_is_closed_and_not_sent() -> None:
    replay = Replay(POLICY._replace(max_line_bytes=10))
    replay.request_queued(Request(1, "ping"), b"x" * 11)
    replay.request_queued(Request(2, "ping"), b"x" * 10)
    assert [entry.request.id for entry in replay.close_unkept()] == [1]
    assert replay.repeat() == b"x" * 10


def opened(id_: Id) -> Notification:
    return Notification(ACKNOWLEDGED, {"_meta": {"io.modelcontextprotocol/subscriptionId": id_}})


def test_a_stream_is_acknowledged_to_the_client_once() -> None:
    replay = Replay(POLICY)
    assert not replay.is_repeated_acknowledgment(opened(1)), "nobody's"
    replay.request_sent(Request(1, "subscriptions/listen"), b"listen\n")
    assert replay.waiting_count == 1
    assert not replay.is_repeated_acknowledgment(opened(1))
    assert replay.waiting_count == 0
    assert replay.is_repeated_acknowledgment(opened(1))
    assert not replay.is_repeated_acknowledgment(Notification("notifications/x", opened(1).params))
    replay.close(1)
    assert not replay.is_repeated_acknowledgment(opened(1))


def test_an_open_stream_is_sent_again_without_limit() -> None:
    replay = sent(Request(1, "subscriptions/listen"))
    replay.is_repeated_acknowledgment(opened(1))
    for _ in range(5):
        assert closed_ids(replay) == []
        assert ids_of(replay.repeat()) == [1]


def test_a_server_cannot_turn_a_call_into_a_stream_that_is_sent_again() -> None:
    replay = sent(Request(1, "tools/call"))
    assert not replay.is_repeated_acknowledgment(opened(1))
    assert replay.waiting_count == 1
    assert closed_ids(replay) == [1]
