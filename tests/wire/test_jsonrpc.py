"""JSON-RPC: text to messages and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.wire.jsonrpc import (
    MAX_ID,
    MAX_NESTING,
    Batch,
    ErrorResponse,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    encode,
    encode_parts,
    parse,
    parse_strict,
)

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
IDS = st.integers() | st.text()
PARAMS = st.none() | st.dictionaries(st.text(), VALUES) | st.lists(VALUES)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Request, IDS, st.text(), PARAMS),
    st.builds(Notification, st.text(), PARAMS),
    st.builds(Response, IDS, VALUES),
    st.builds(ErrorResponse, IDS | st.none(), st.integers(), st.text(), VALUES),
)


@given(MESSAGES)
def test_encoded_messages_are_parsed_back(message: Message) -> None:
    line = encode(message)
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1
    assert repr(parse(line)) == repr(message)  # repr: 1, True and 1.0 are equal


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_parsed_to_a_value(line: bytes) -> None:
    assert isinstance(
        parse(line), Request | Notification | Response | ErrorResponse | Batch | Malformed
    )


def test_a_request_with_id_zero_is_not_a_notification() -> None:
    assert parse(b'{"method":"m","jsonrpc":"2.0","id":0}') == Request(0, "m", None)
    assert parse(b'{"method":"m","jsonrpc":"2.0"}') == Notification("m", None)


def test_a_batch_keeps_valid_and_malformed_members() -> None:
    batch = parse(b'[{"jsonrpc":"2.0","id":1,"method":"m"},[],{"jsonrpc":"2.0","method":"n"}]')
    assert isinstance(batch, Batch)
    request, wrong, notice = batch.members
    assert (request, notice) == (Request(1, "m"), Notification("n"))
    assert isinstance(wrong, Malformed)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b"\xef\xbb\xbf{}", b"NaN", b"[Infinity]", b"[" * 100_000, b"9" * 5000],
)
def test_text_that_is_not_json_is_a_parse_error(text: bytes) -> None:
    found = parse(text)
    assert isinstance(found, Malformed)
    assert (found.error.id, found.error.code) == (None, -32700)


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (b"[]", None),
        (b"7", None),
        (b"{}", None),
        (b'{"jsonrpc":2.0,"id":1,"method":"m"}', 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":false,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":"x","method":7}', "x"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":"p"}', 1),
        (b'{"jsonrpc":"2.0","id":1}', 1),
        (b'{"jsonrpc":"2.0","result":{}}', None),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":7}', 1),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}', 1),
    ],
)
def test_json_that_is_not_a_message_is_an_invalid_request(text: bytes, id_: object) -> None:
    found = parse(text)
    assert isinstance(found, Malformed)
    assert (found.error.id, found.error.code) == (id_, -32600)


def test_an_error_without_data_has_no_data_member() -> None:
    assert json.loads(encode(ErrorResponse(None, -1, "m"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "m"},
    }


# The strict reader


@given(MESSAGES)
def test_both_parsers_agree_on_strict_messages(message: Message) -> None:
    line = encode(message)
    found = parse_strict(line.rstrip(b"\n"))
    assert isinstance(found, Malformed) or repr(found) == repr(message)


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_parsed_strictly_to_a_value(line: bytes) -> None:
    assert isinstance(
        parse_strict(line), Request | Notification | Response | ErrorResponse | Batch | Malformed
    )


@pytest.mark.parametrize(
    "line",
    [
        b' { "jsonrpc":"2.0", "id":%d,\t"method":"m","params":{"a":1e400} } \r' % MAX_ID,
        b'{"jsonrpc":"2.0","id":"\\ud83d\\ude00","method":"m","params":null}',
        b'{"jsonrpc":"2.0","id":1,"result":"\\ud800","other":{"id":1}}',
        b'{"jsonrpc":"2.0","id":1,"result":%s1%s}'
        % (b"[" * (MAX_NESTING - 1), b"]" * (MAX_NESTING - 1)),
        b'{"jsonrpc":"2.0","id":1,"result":[%s]}' % b",".join([b'{"[[":[{}]}'] * 500),
        b'{"jsonrpc":"2.0","id":1,"result":[%s,"%s"]}' % (b"9" * 1000, b"9" * 5000),
        b'{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}',
    ],
)
def test_unambiguous_lines_pass_the_strict_parser(line: bytes) -> None:
    assert not isinstance(parse_strict(line), Malformed)
    assert repr(parse_strict(line)) == repr(parse(line))


CALL = b'{"jsonrpc":"2.0","id":7,"method":"m","params":{}}'


@pytest.mark.parametrize(
    ("old", "new", "id_"),
    [
        (b'"id":7', b'"id":7.0', None),
        (b'"id":7', b'"id":null', None),
        (b'"id":7', b'"id":{}', None),
        (b'"id":7', b'"id":true', None),
        (b'"id":7', b'"id":%d' % (MAX_ID + 1), None),
        (b'"id":7', b'"id":"\\udfff"', None),
        (b'"id":7', b'"id":6,"id":7', 7),
        (b'"id":7', b'"id":7,"ID":8', 7),
        (b'"2.0"', b'"1.0"', 7),
        (b'"2.0"', b"2.0", 7),
        (b'"jsonrpc":"2.0",', b"", 7),
        (b'"m"', b'"m\\ud800"', 7),
        (b'"m"', b'"m","result":1', 7),
        (b'"m"', b'"m","error":{"code":1,"message":"m"}', 7),
        (b'"method"', b'"Method":"n","method"', 7),
        (b"{}", b"[]", 7),
        (b"{}", b'"x"', 7),
        (b"{}", b'{"a":1,"b":{"a":2,"a":3}}', 7),
        (b"{}", b'{"a":%s}' % (b"9" * 1001), 7),
        (b"{}", b'{"a":0.%s}' % (b"9" * 1001), 7),
        (b"{}", b'{"a":NaN}', 7),
        (b"{}", b'{"a":"\xff"}', 7),
        (b"{}", b'{"a":\r1}', 7),
        (b"{}", b'{"a":%s}' % (b"[" * MAX_NESTING + b"]" * MAX_NESTING), 7),
        (b"{}", b"[" * 100_000, None),
        (b"{}", b"{", None),
    ],
)
def test_ambiguous_lines_are_malformed(old: bytes, new: bytes, id_: object) -> None:
    found = parse_strict(CALL.replace(old, new))
    assert isinstance(found, Malformed)
    assert found.error.id == id_
    assert found.is_call is (new not in (b"[" * 100_000, b"{"))


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":7,"error":{"code":true,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":7,"result":"\xff"}',
    ],
)
def test_a_malformed_answer_keeps_the_id_of_its_request(line: bytes) -> None:
    found = parse_strict(line)
    assert isinstance(found, Malformed)
    assert (found.error.id, found.is_call) == (7, False)


def test_an_error_with_an_unusable_id_is_malformed() -> None:
    assert isinstance(
        parse_strict(b'{"jsonrpc":"2.0","id":1.5,"error":{"code":1,"message":"m"}}'), Malformed
    )


@pytest.mark.parametrize("count", [0, 1, 512, 513, 2_000])
def test_a_response_is_the_same_in_parts(count: int) -> None:
    result = {"items": [{"path": "/src/\udcff", "n": n} for n in range(count)], "revision": 7}
    response = Response("a\udcff", result)
    parts = list(encode_parts(response))
    assert b"".join(parts) == encode(response)
    assert all(part.count(b'"n"') <= 512 for part in parts)
