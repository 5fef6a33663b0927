"""Requests without an answer: bounded, in order, and answered once each."""

from __future__ import annotations

import json
from typing import Any

from rootsd.core.errors import DaemonUnreachable
from rootsd.proxy.bridge.pending import PendingRequests
from rootsd.wire.jsonrpc import Request, encode

GONE = DaemonUnreachable("gone", "rootsd up")


def note(owed: PendingRequests, request: Request, *, forwarded: bool = True) -> None:
    owed.add(request, encode(request), forwarded=forwarded)


def ids(lines: bytes) -> list[Any]:
    return [json.loads(line)["id"] for line in lines.splitlines()]


def test_requests_keep_their_order_and_id_types() -> None:
    owed = PendingRequests()
    for id_ in (1, "1", 0, ""):
        note(owed, Request(id_, "ping"))
    assert owed.remove("1")
    assert owed.remove("1") is None
    assert ids(owed.replay()[1]) == [1, 0, ""]


def test_a_duplicate_id_belongs_to_the_first_request() -> None:
    owed = PendingRequests()
    note(owed, Request(1, "ping"))
    note(owed, Request(1, "unheard/of"))
    assert owed.connection_lost() == b""


def test_a_request_is_sent_to_at_most_three_daemons() -> None:
    owed = PendingRequests()
    note(owed, Request(1, "ping"))
    for _ in range(2):
        assert owed.connection_lost() == b""
        assert ids(owed.replay()[1]) == [1]
    assert ids(owed.connection_lost()) == [1]
    assert not owed


def test_a_request_that_no_daemon_got_is_always_sent() -> None:
    owed = PendingRequests()
    note(owed, Request(1, "unheard/of"), forwarded=False)
    assert owed.connection_lost() == b""
    assert ids(owed.replay()[1]) == [1]
    assert ids(owed.connection_lost()) == [1]


def test_fail_all_leaves_only_streams_open() -> None:
    owed = PendingRequests()
    note(owed, Request(1, "subscriptions/listen"))
    note(owed, Request(2, "ping"))
    assert owed.open_stream(1)
    assert owed.open_stream(1) is False
    assert owed.open_stream(3) is None
    assert ids(owed.fail_all(GONE)) == [2]
    assert not owed
    assert ids(owed.replay()[1]) == [1]


def test_it_is_full_by_count_or_size_until_requests_are_removed() -> None:
    owed = PendingRequests()
    for id_ in range(256):
        assert not owed.is_full
        note(owed, Request(id_, "ping"), forwarded=False)
    assert owed.is_full
    assert len(ids(owed.fail_all(GONE))) == 256
    for id_ in range(20):
        note(owed, Request(id_, "ping", {"text": "x" * 60_000}), forwarded=False)
    kept = ids(owed.replay()[1])
    assert len(kept) < 20
    for id_ in kept:
        owed.remove(id_)
    assert not owed.is_full
