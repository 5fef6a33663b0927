"""The id of a response, and the change notifications for a subscription."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.errors import DaemonUnreachable
from rootsd.wire.jsonrpc import ErrorResponse, Id, Notification, Request, Response, encode
from rootsd.wire.mcp_messages import (
    change_notifications,
    encode_error,
    response_id,
    subscription_id,
)


@given(st.integers() | st.text(max_size=400), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_the_id_of_an_answer_does_not_depend_on_the_form_of_the_line(
    id_: Id, separators: tuple[str, str]
) -> None:
    for message in (Response(id_, {"text": "x" * 2000}), ErrorResponse(id_, -1, "no")):
        value = json.loads(encode(message))
        line = json.dumps(value, separators=separators, ensure_ascii=False).encode(
            errors="surrogatepass"
        )
        backwards = json.dumps(dict(reversed(value.items()))).encode()
        assert response_id(encode(message)) == response_id(backwards) == id_
        if not any("\ud800" <= letter <= "\udfff" for letter in str(id_)):
            assert response_id(line) == id_


@pytest.mark.parametrize(
    "line",
    [
        encode(Notification("n")),
        encode(Request(1, "m")),
        encode(ErrorResponse(None, -32700, "no")),
        b'{"jsonrpc":"2.0","id":[1],"result":{}}',
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
        b'{"jsonrpc":"2.0","id":\xff',
        b"\xff",
        b"",
    ],
)
def test_other_lines_answer_nothing(line: bytes) -> None:
    assert response_id(line) is None


def test_an_error_names_the_next_command() -> None:
    error = json.loads(encode_error("a", DaemonUnreachable("gone", "rootsd up")))["error"]
    assert error["message"] == "gone; try: rootsd up"
    assert error["data"] == {"reason": "unreachable", "remedy": "rootsd up"}


def test_change_notifications_cover_exactly_the_subscribed_kinds() -> None:
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": 5}}
    honoured = {"toolsListChanged": True, "resourcesListChanged": False}
    acknowledged = Notification("a", {**meta, "notifications": honoured})
    news = [json.loads(line) for line in change_notifications(acknowledged)]
    assert [each["method"] for each in news] == ["notifications/tools/list_changed"]
    assert [each["params"] for each in news] == [meta]


@pytest.mark.parametrize("params", [None, [], {}, {"_meta": {}}, {"_meta": 1}])
def test_a_notification_without_a_stream_has_no_subscription_id(
    params: dict[str, object] | None,
) -> None:
    assert subscription_id(Notification("n", params)) is None
    assert list(change_notifications(Notification("n", params))) == []
