"""JSON-RPC: text to messages and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.wire.jsonrpc import (
    Batch,
    Fault,
    Malformed,
    Message,
    Notice,
    Reply,
    Request,
    encode,
    parse,
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
    st.builds(Notice, st.text(), PARAMS),
    st.builds(Reply, IDS, VALUES),
    st.builds(Fault, IDS | st.none(), st.integers(), st.text(), VALUES),
)


@given(MESSAGES)
def test_what_is_encoded_is_parsed_back_to_the_same(message: Message) -> None:
    line = encode(message)
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1
    assert repr(parse(line)) == repr(message)  # repr: 1, True and 1.0 are equal


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_anything_at_all_is_parsed_to_a_value(line: bytes) -> None:
    assert isinstance(parse(line), Request | Notice | Reply | Fault | Batch | Malformed)


def test_ids_keep_their_type() -> None:
    for text, id_ in (("0", 0), ('"0"', "0"), ('""', ""), ("-7", -7)):
        message = parse(b'{"jsonrpc":"2.0","id":%s,"method":"m"}' % text.encode())
        assert isinstance(message, Request)
        assert repr(message.id) == repr(id_)


def test_a_request_with_id_zero_is_no_notice() -> None:
    assert parse(b'{"method":"m","jsonrpc":"2.0","id":0}') == Request(0, "m", None)
    assert parse(b'{"method":"m","jsonrpc":"2.0"}') == Notice("m", None)


def test_a_batch_holds_what_is_wrong_beside_what_is_right() -> None:
    batch = parse(b'[{"jsonrpc":"2.0","id":1,"method":"m"},[],{"jsonrpc":"2.0","method":"n"}]')
    assert isinstance(batch, Batch)
    request, wrong, notice = batch.members
    assert (request, notice) == (Request(1, "m"), Notice("n"))
    assert isinstance(wrong, Malformed)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b"\xef\xbb\xbf{}", b"NaN", b"[Infinity]", b"[" * 100_000, b"9" * 5000],
)
def test_what_is_no_json_is_a_parse_error(text: bytes) -> None:
    found = parse(text)
    assert isinstance(found, Malformed)
    assert (found.fault.id, found.fault.code) == (None, -32700)


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
def test_json_that_is_no_message_is_an_invalid_request(text: bytes, id_: object) -> None:
    found = parse(text)
    assert isinstance(found, Malformed)
    assert (found.fault.id, found.fault.code) == (id_, -32600)


def test_a_fault_without_data_says_nothing_of_data() -> None:
    assert json.loads(encode(Fault(None, -1, "m"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "m"},
    }
