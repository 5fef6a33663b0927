"""Edits of JSON text: values are right, other bytes stay, and a removal undoes an insertion."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rootsd.settings.errors import NotEditable
from rootsd.settings.json_spans import Items, contents, insert, parse, remove, remove_empty

DENY = ("permissions", "deny")
RULES = Items(DENY, ["Read(//a/**)", "Edit(//a/**)"])
MEMBERS = Items(("permission", "external_directory"), {"/a/**": "deny", "/b/**": "allow"})
TEXTS = (
    "{}", "{}\n", "{\n}\n", "\ufeff{}\n", '{"a": 1}', '{"a":1,}', '{ "a" : [ ] }',
    '{\n  "a": 1\n}\n', '{\n  "a": 1,\n}\n', '{\n  "a": 1 // c\n}\n', '{\n  "a": 1, // c\n}\n',
    '{\r\n\t"a": 1\r\n}\r\n', '// top\n{"a": 1} // end', '{ /* nothing */ }',
    '{"permissions": {}}', '{"permissions": {"deny": []}}', '{"permissions":{"deny":["x"]}}',
    '{"permissions":{"deny":["x",]}}', '{"permissions": {"deny": [ // c\n]}}',
    '{"permissions": {"deny": ["x" /* a */ ]}}', '{"permissions": {"deny": [\n"x", "y"\n]}}',
    '{\n "permissions": {\n  "deny": [\n   "x", // q\n   "y" // z\n  ]\n }\n}',
    '{\n "permissions": {\n  "deny": [\n   "x", // q\n   "y", // z\n   // end\n  ]\n }\n}',
    '{"permission": {"external_directory": {"*": "ask"}}}',
    '{"permission": {"external_directory": {\n  "*": "ask", // c\n}}}',
)  # fmt: skip


def undone(text: str, items: Items, made: list[tuple[str, ...]]) -> str:
    return remove_empty(remove(text, items), made)[0]


@pytest.mark.parametrize("items", [RULES, MEMBERS], ids=["array", "object"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_removal_restores_every_byte(text: str, items: Items) -> None:
    after, made = insert(text, items)
    there = contents(after, items.keys, is_mapping=items.is_mapping)
    assert [each for each in items.values if each in there] == list(items.values)
    assert undone(after, items, made) == text


def test_comments_stay_at_their_entries() -> None:
    text = '{\n  "permissions": {\n    "deny": [\n      "x" // why x\n    ]\n  }\n}\n'
    after, _ = insert(text, Items(DENY, ["y"]))
    assert '"x", // why x\n      "y"\n' in after
    assert remove(after, Items(DENY, ["x"])).count("why x") == 1


# A value, written with random blanks, comments, and trailing commas.
BLANKS = ["", "", " ", "\n", "\n  ", "\t", "\r\n"]
TRIVIA = st.sampled_from([*BLANKS, " // c\n", "/* c */", "\n/* } ] */\n"])
ENDS = st.sampled_from(["", "", ","])
SCALARS = st.sampled_from(['"x"', '"\\u00e9\\""', '"// no"', "1", "-0.5e3", "true", "null", '"["'])
Texts = st.SearchStrategy[str]


@st.composite
def objects(draw: st.DrawFn, trivia: Texts = TRIVIA, ends: Texts = ENDS, levels: int = 2) -> str:
    members = []
    values = SCALARS | (objects(trivia, ends, levels - 1) if levels else SCALARS)
    for key in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3)):
        value = draw(values | arrays(trivia, ends))
        members.append(f'{draw(trivia)}"{key}"{draw(trivia)}:{draw(trivia)}{value}{draw(trivia)}')
    return "{" + ",".join(members) + (draw(ends) if members else "") + draw(trivia) + "}"


@st.composite
def arrays(draw: st.DrawFn, trivia: Texts, ends: Texts) -> str:
    items = [f"{draw(trivia)}{each}{draw(trivia)}" for each in draw(st.lists(SCALARS, max_size=3))]
    return "[" + ",".join(items) + (draw(ends) if items else "") + draw(trivia) + "]"


@given(
    text=objects(),
    keys=st.lists(st.sampled_from("abcde"), min_size=1, max_size=3).map(tuple),
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
        min_size=1, max_size=3, unique=True,
    ),
    is_mapping=st.booleans(),
)  # fmt: skip
def test_any_text_is_restored(
    text: str, keys: tuple[str, ...], names: list[str], is_mapping: bool
) -> None:
    items = Items(keys, dict.fromkeys(names, "deny") if is_mapping else names)
    before = parse(text).value
    try:
        there = contents(text, keys, is_mapping=is_mapping)
    except NotEditable:
        with pytest.raises(NotEditable):
            insert(text, items)
        return
    assume(not any(name in there for name in names))
    after, made = insert(text, items)
    value: Any = parse(after).value
    for key in keys:
        value = value[key]
    assert [each for each in value if each in names] == names
    assert undone(after, items, made) == text
    assert parse(text).value == before


# The standard parser knows neither comments nor trailing commas.
@given(objects(trivia=st.sampled_from(BLANKS), ends=st.just("")))
def test_the_values_equal_those_of_the_standard_parser(text: str) -> None:
    assert parse(text).value == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "null", "[]", "{", "{} {}", "{'a': 1}", '{"a": 1, "a": 2}', '{"a" 1}', "{,}",
        '{"permissions": 1}', '{"permissions": {"deny": "x"}}', '{"permissions": {"deny": {}}}',
        '{"a": "\\x"}', '{"a": NaN}', '{"a": 01}', '{"a": "\n"}',
        '{"a": ' + "[" * 100 + "]" * 100 + "}", "[" * 100_000,
    ],
    ids=range(19),
)  # fmt: skip
def test_a_text_of_another_form_is_not_edited(text: str) -> None:
    with pytest.raises(NotEditable):
        insert(text, RULES)


def test_an_entry_with_another_value_is_not_removed() -> None:
    text = '{"permission": {"external_directory": {"/a/**": "ask"}}}'
    assert remove(text, MEMBERS) == text
