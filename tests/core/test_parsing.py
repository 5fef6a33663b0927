"""Text from other programs gives a value or one kind of error."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rootsd
from rootsd.core.parsing import MAX_DOTS, MAX_LEVELS, Unparsable, parse_json, parse_toml

DEEP = 100_000
# These modules parse messages between the daemon and its helper, and MCP messages, where each
# error has its own answer.
MAY_PARSE = {
    "core/parsing.py",
    "mcp/protocol.py",
    "proxy/run/input_required.py",
    "wire/jsonrpc.py",
    "wire/mcp_messages.py",
}


@pytest.mark.parametrize(
    "text",
    [
        "[" * DEEP,
        '{"a":' * DEEP,
        "[" * DEEP + "]" * DEEP,
        "[" * (MAX_LEVELS + 1) + "]" * (MAX_LEVELS + 1),
        "9" * DEEP,
        "1e999",
        "-1e999",
        "NaN",
        "-Infinity",
        "",
        "{",
        b"\xff",
        '"\n"',
    ],
)
def test_hostile_or_damaged_json_raises_one_error(text: str | bytes) -> None:
    with pytest.raises(Unparsable) as caught:
        parse_json(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEP,
        "a = " + "{b = " * DEEP,
        "a = " + "[" * 100 + "]" * 100,
        "a = " + "9" * DEEP,
        "a." * DEEP + "b = 1",
        "a." * (MAX_DOTS - 1) + "b = 1",
        "[" + "a." * DEEP + "b]",
        "a = {" + "b." * DEEP + "c = 1}",
        "a = 1979-99-99",
        "a",
    ],
)
def test_hostile_or_damaged_toml_raises_one_error(text: str) -> None:
    with pytest.raises(Unparsable):
        parse_toml(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_json_of_every_value_is_parsed_back(value: object) -> None:
    text = json.dumps(value)
    assert parse_json(text) == parse_json(text.encode()) == value


def test_no_module_parses_text_without_these_functions() -> None:
    package = Path(rootsd.__file__).parent
    sources = {file: file.read_bytes() for file in package.rglob("*.py")}
    found = {
        file.relative_to(package).as_posix()
        for file, source in sources.items()
        if b"load" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr)
        in {("json", "load"), ("json", "loads"), ("tomllib", "load"), ("tomllib", "loads")}
    }
    assert "core/parsing.py" in found, "control: the search finds the parser itself"
    assert found <= MAY_PARSE


def test_values_may_be_nested_as_deep_as_the_limit() -> None:
    deepest = "[" * MAX_LEVELS + "1" + "]" * MAX_LEVELS
    assert parse_json(deepest)
    with pytest.raises(Unparsable):
        parse_json(f"[{deepest}]")
