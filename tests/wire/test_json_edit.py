"""Edits of JSON text change the member and no other character."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.wire import jsonrpc

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "path", "changed"),
    [
        ('{"a":1}', ("a",), '{"a":9}'),
        ('{ "a" : 1e400 , "b":1.10}', ("b",), '{ "a" : 1e400 , "b":9}'),
        ("{}", ("a",), '{"a":9}'),
        ("{ }", ("a",), '{"a":9 }'),
        ('{"b":"\\ud800"}', ("a",), '{"a":9,"b":"\\ud800"}'),
        ('{"a":{"b":[1,{"c":2}]},"c":3}', ("a", "c"), '{"a":{"c":9,"b":[1,{"c":2}]},"c":3}'),
        ('{"\\u0061":1}', ("a",), '{"\\u0061":9}'),
        ('{"a":1,"a":2}', ("a",), '{"a":1,"a":9}'),
        ('{"a":{"x":1},"a":{}}', ("a", "x"), '{"a":{"x":1},"a":{"x":9}}'),
        (' {"a":1} ', ("a",), ' {"a":9} '),
    ],
)
def test_set_member_puts_the_value_at_the_path(
    text: str, path: tuple[str, ...], changed: str
) -> None:
    assert jsonrpc.set_member(text, path, "9") == changed


@pytest.mark.parametrize("text", ['{"b":{}}', '{"a":3}', '{"a":[{"b":1}]}'])
def test_set_member_needs_an_existing_object(text: str) -> None:
    with pytest.raises(KeyError):
        jsonrpc.set_member(text, ("a", "b"), "9")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('{"a":1}', "{}"),
        ('{"a":1,"b":1e400}', '{"b":1e400}'),
        ('{"b": 1.0 , "a":1, "c":[ 2 ]}', '{"b": 1.0,"c":[ 2 ]}'),
        ('{"a":1,"b":2,"a":3}', '{"b":2}'),
        ('{"b":2}', '{"b":2}'),
    ],
)
def test_a_member_is_dropped(text: str, changed: str) -> None:
    assert jsonrpc.remove_member(text, ("a",)) == changed


def test_the_text_of_elements_does_not_change() -> None:
    text = ' [ {"a":1e400}, "x,]" ,[1, 2],3 ] '
    found = [text[start:end] for start, end in jsonrpc.element_spans(text)]
    assert found == ['{"a":1e400}', '"x,]"', "[1, 2]", "3"]
    assert jsonrpc.element_spans("[ ]") == []


@given(OBJECTS, st.text(), VALUES, st.sampled_from([None, 1]), st.booleans())
def test_an_edit_equals_parsing_and_printing(
    whole: dict[str, Any],
    key: str,
    value: Any,  # noqa: ANN401
    indent: int | None,
    ascii_: bool,
) -> None:
    text = json.dumps({"holder": whole, "z": 1}, indent=indent, ensure_ascii=ascii_)
    changed = jsonrpc.set_member(text, ("holder", key), json.dumps(value))
    assert json.loads(changed) == {"holder": {**whole, key: value}, "z": 1}
    dropped = jsonrpc.remove_member(changed, ("holder", key))
    assert json.loads(dropped)["holder"] == {k: v for k, v in whole.items() if k != key}
