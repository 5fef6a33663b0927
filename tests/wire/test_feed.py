"""Reading the messages of one subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rootsd.core.errors import ErrorCode
from rootsd.wire.feed import (
    CHANGE_METHOD,
    FEED_VERSION,
    FOLLOW_ID,
    BadFeed,
    Changed,
    Connected,
    FeedReader,
    Given,
    SessionMoved,
    Widened,
)
from rootsd.wire.jsonrpc import ErrorResponse, Message, Notification, Response, encode

ANSWER: dict[str, Any] = {"version": FEED_VERSION, "start": None}


def change(number: object) -> Notification:
    return Notification(CHANGE_METHOD, {"number": number})


def read(*messages: Message) -> list[Connected | Changed | Given | SessionMoved | Widened]:
    return [*FeedReader().read(b"".join(map(encode, messages)))]


def test_an_answer_and_each_next_change_are_events() -> None:
    assert read(Response(FOLLOW_ID, ANSWER), change(0), change(1)) == [
        Connected(ANSWER), Changed({"number": 0}), Changed({"number": 1}),
    ]  # fmt: skip


def test_a_message_may_come_in_parts() -> None:
    reader, data = FeedReader(), encode(Response(FOLLOW_ID, ANSWER))
    parts = (data[at : at + 1] for at in range(len(data)))
    assert [event for part in parts for event in reader.read(part)] == [Connected(ANSWER)]
    assert reader.is_answered


def test_answers_to_other_requests_and_unknown_notifications_are_ignored() -> None:
    others = (Response(7, {}), ErrorResponse(8, -1, "no"), Notification("later", {}))
    assert read(*others, Response(FOLLOW_ID, ANSWER)) == [Connected(ANSWER)]


@pytest.mark.parametrize("numbers", [[1], [0, 0], [0, 2], [None], ["0"]])
def test_a_change_that_is_missing_is_noticed(numbers: Iterable[object]) -> None:
    with pytest.raises(BadFeed, match="left out"):
        read(Response(FOLLOW_ID, ANSWER), *map(change, numbers))


def test_a_change_before_the_answer_is_refused() -> None:
    with pytest.raises(BadFeed, match="left out"):
        read(change(0))


def test_an_error_of_the_daemon_keeps_its_code_and_its_remedy() -> None:
    data = {"code": "busy", "remedy": "rootsd sessions"}
    with pytest.raises(BadFeed, match="too many") as error:
        read(ErrorResponse(FOLLOW_ID, -1, "too many", data))
    assert (error.value.code, error.value.remedy) == (ErrorCode.BUSY, "rootsd sessions")
    with pytest.raises(BadFeed) as error:
        read(ErrorResponse(FOLLOW_ID, -1, "no", {"code": "of tomorrow", "remedy": "x"}))
    assert error.value.code is ErrorCode.FAILED
    with pytest.raises(BadFeed) as error:
        read(ErrorResponse(FOLLOW_ID, -1, "no", "nothing"))
    assert error.value.remedy


@pytest.mark.parametrize("line", [b"\xff\n", b"[]\n", b"{}\n", b"\n"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(BadFeed):
        [*FeedReader().read(line)]
