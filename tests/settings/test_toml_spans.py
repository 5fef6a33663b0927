"""Edits of TOML keep comments, order, and layout, and each key has a line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.settings.errors import NotEditable
from rootsd.settings.toml_spans import (
    KeyPath,
    append_table,
    find_lines,
    parse,
    remove_member,
    set_value,
)

PARENTS = ("parent",)
TEXT = """\
# about my folders

[[parent]]
path = '~/src'  # the main one
depth = 3

# the second,
# for work
[[parent]]
path = "/srv/work"
skip = [
  "old",  # very old
]

# the end
"""
INLINE = """parent = [  # both
  {path = "/a"},
  {path = "/b", depth = 2},
]
"""


NEW = {"path": "/c", "depth": 2}


def test_a_table_is_added_at_the_end_of_its_array() -> None:
    block = '[[parent]]\npath = "/c"\ndepth = 2'
    assert append_table(TEXT, PARENTS, NEW) == f"{TEXT}\n{block}\n"
    assert append_table("# new\n", PARENTS, NEW) == f"# new\n\n{block}\n"
    assert append_table("", PARENTS, NEW) == f"{block}\n"
    assert append_table("# x", PARENTS, NEW) == f"# x\n\n{block}"


def test_a_removed_table_leaves_all_comments_around_it() -> None:
    assert remove_member(TEXT, ("parent", 0)) == TEXT.replace(
        "\n[[parent]]\npath = '~/src'  # the main one\ndepth = 3\n", ""
    )
    assert remove_member(TEXT, ("parent", 1)) == (
        TEXT.partition('[[parent]]\npath = "/srv')[0] + "\n# the end\n"
    )


def test_the_last_table_of_an_array_takes_the_array_with_it() -> None:
    assert remove_member("[[a]]\nx = 1\n\n[a.sub]\ny = 2\n[b]\n", ("a", 0)) == "[b]\n"
    assert remove_member("a = [{x = 1}]\n", ("a", 0)) == "a = []\n"


def test_tables_below_an_array_belong_to_its_last_table() -> None:
    text = "[[a]]\n[a.s]\nx = 1\n[[a]]\n[a.s]\nx = 2\n"
    assert parse(set_value(text, ("a", 0, "s", "x"), 3))["a"] == [{"s": {"x": 3}}, {"s": {"x": 2}}]
    assert parse(remove_member(text, ("a", 0)))["a"] == [{"s": {"x": 2}}]
    assert remove_member(text, ("a", 2)) == text


def test_a_new_key_goes_behind_the_others_of_its_table() -> None:
    text = set_value(TEXT, ("parent", 0, "depth"), 5)
    assert set_value(text, ("parent", 0, "nested"), "vcs") == TEXT.replace(
        "depth = 3\n", 'depth = 5\nnested = "vcs"\n'
    )
    assert set_value("[[parent]]\npath = '/a'", ("parent", 0, "depth"), 2) == (
        "[[parent]]\npath = '/a'\ndepth = 2"
    )
    assert set_value("[t] # t\n\n[u]\n", ("t", "x"), 1) == "[t] # t\nx = 1\n\n[u]\n"
    assert set_value("  [t]\n  a.b = 1\n", ("t", "a", "c"), 2) == "  [t]\n  a.b = 1\n  a.c = 2\n"


def test_an_array_in_one_value_stays_one() -> None:
    added = append_table(INLINE, PARENTS, NEW)
    assert added == INLINE.replace("2},\n", '2},\n  { path = "/c", depth = 2 },\n')
    assert remove_member(added, ("parent", 2)) == INLINE
    assert remove_member(INLINE, ("parent", 0)) == INLINE.replace('  {path = "/a"},\n', "")
    assert set_value(INLINE, ("parent", 1, "depth"), 9) == INLINE.replace("2}", "9}")
    assert set_value(INLINE, ("parent", 0, "depth"), 9) == INLINE.replace('a"}', 'a", depth = 9}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = []", "a = [{ x = 1 }]"),
        ("a = [ # none\n]\n", "a = [{ x = 1 }]\n"),
        ("a = [{x = 0}]", "a = [{x = 0}, { x = 1 }]"),
        ("a = [{x = 0}, ]", "a = [{x = 0}, { x = 1 }, ]"),
        ("a = [\n {x = 0} # zero\n]", "a = [\n {x = 0}, # zero\n { x = 1 }\n]"),
        ("a = [\r\n {x = 0},\r\n]", "a = [\r\n {x = 0},\r\n { x = 1 },\r\n]"),
    ],
)
def test_an_item_is_added_in_the_layout_of_the_array(text: str, expected: str) -> None:
    assert append_table(text, ("a",), {"x": 1}) == expected


@pytest.mark.parametrize("text", ["a = 1\n", "[a]\n", "a = {}\n"])
def test_what_is_no_array_gets_no_table(text: str) -> None:
    with pytest.raises(NotEditable):
        append_table(text, ("a",), {})


PATHS = st.text(st.characters(codec="utf-8"), min_size=1)
ENTRIES = st.fixed_dictionaries(
    {"path": PATHS}, optional={"depth": st.integers(1, 64), "skip": st.lists(PATHS, max_size=3)}
)
GAPS = st.sampled_from(("", "\n", "# a note\n", "\n# two\n\n# notes\n"))


@given(
    st.sampled_from(("", "parent = []\n")),
    st.lists(st.tuples(ENTRIES, GAPS), max_size=4),
    st.data(),
)
def test_every_edit_has_its_effect_and_keeps_every_comment(
    start: str, entries: list[tuple[dict[str, Any], str]], data: st.DataObject
) -> None:
    text, expected = start, [entry for entry, _ in entries]
    for entry, gap in entries:
        text = append_table(text, PARENTS, entry) + gap
    comments = text.count("\n# ")
    assert parse(text).get("parent", []) == expected
    index = data.draw(st.integers(0, max(len(entries) - 1, 0)))
    if entries:
        expected[index] = {**expected[index], "depth": 70}
        text = set_value(text, ("parent", index, "depth"), 70)
        assert parse(text)["parent"] == expected
        del expected[index]
    text = remove_member(text, ("parent", index))
    assert parse(text).get("parent", []) == expected
    assert text.count("\n# ") >= comments - text.startswith("# ")


def test_a_value_goes_to_the_end_of_its_table_and_leaves_all_comments() -> None:
    text = "[sessions] # s\nmax = 9 # nine\n\n# about roots\n[roots]\nallow = []\n"
    assert set_value(text, ("sessions", "max"), 7) == text.replace("= 9", "= 7")
    assert set_value(text, ("sessions", "more"), 5) == text.replace("nine\n", "nine\nmore = 5\n")


def test_a_value_of_a_missing_table_adds_the_table() -> None:
    keys = ("confine", "read")
    assert set_value(TEXT, keys, ["~/a"]) == TEXT + '\n[confine]\nread = ["~/a"]\n'
    assert set_value("", keys, ["~/a"]) == '[confine]\nread = ["~/a"]\n'


@pytest.mark.parametrize(
    "text",
    [
        "sessions.max = 9\n",
        "sessions = {max = 9}\n",
        "[sessions]\r\nmax = 9\r\n",
        "[ 'sessions' ]\n'max' = 9",
        "[sessions]\nmax = 9\n# the end",
        "sessions = {}\n",
        "[sessions]",
    ],
)
def test_a_value_is_set_and_removed_in_every_layout(text: str) -> None:
    changed = set_value(text, ("sessions", "max"), 7)
    assert parse(changed) == {"sessions": {"max": 7}}
    more = set_value(changed, ("sessions", "more"), 5)
    assert parse(remove_member(more, ("sessions", "max"))) == {"sessions": {"more": 5}}


def test_a_removed_value_leaves_its_table_and_the_line_end() -> None:
    text = "# mine\n[confine]\nnetwork = false\n"
    assert remove_member(text, ("confine", "network")) == "# mine\n[confine]\n"
    assert remove_member(text, ("confine", "read")) == text
    assert remove_member(text, ("roots", "allow")) == text


@pytest.mark.parametrize(
    "text", ["t = {a.b = 1}\n", "[t]\na.b = 1\n[t.a.c]\n", "[[t]]\n", "t = 1\n"]
)
def test_a_value_is_never_set_in_place_of_others(text: str) -> None:
    with pytest.raises(NotEditable):
        set_value(text, ("t", "a"), 1)


LINES = '''\
# [not.a.table]
title = """
[not.a.table]
a = 1"""

"quoted.key" = '# no comment' # a = 1
dotted . inner = [
  "[x]",  # b = 2
  { c = 3 },
]
[table]
key = """a \\""" [[x]] = 1
"""
[[list]]
first = 1
[[list]]
[list.below]
second = \'\'\'[
\'\'\'
[[list.deep]]
third = 1
"\\u0061\\t" = 1
'''


def test_each_key_has_the_line_where_it_begins() -> None:
    tomllib.loads(LINES)
    assert find_lines(LINES) == {
        ("title",): 2,
        ("quoted.key",): 6,
        ("dotted",): 7,
        ("dotted", "inner"): 7,
        ("dotted", "inner", 0): 8,
        ("dotted", "inner", 1): 9,
        ("dotted", "inner", 1, "c"): 9,
        ("table",): 11,
        ("table", "key"): 12,
        ("list",): 14,
        ("list", 0): 14,
        ("list", 0, "first"): 15,
        ("list", 1): 16,
        ("list", 1, "below"): 17,
        ("list", 1, "below", "second"): 18,
        ("list", 1, "deep"): 20,
        ("list", 1, "deep", 0): 20,
        ("list", 1, "deep", 0, "third"): 21,
        ("list", 1, "deep", 0, "a\t"): 22,
    }


def test_windows_line_ends_count_as_one_line_each() -> None:
    assert find_lines("a = 1\r\n\r\n[t]\r\nb = 2\r\n")["t", "b"] == 4


_VALUES = st.sampled_from(
    ["1", "'#'", '"\\""', '"""\n[x]\n"""', "'''\ny = 1'''", "[\n1,\n]", "{z = 1}"]
)
_TABLES = st.lists(
    st.tuples(
        st.sampled_from(["[t{}]", "[[list]] #{}", "['t.{}']", "[s.t{}]", "[list{}.x]"]),
        st.lists(st.tuples(st.sampled_from(["k{}", "'k {}'", "d{}.e"]), _VALUES), max_size=4),
    ),
    max_size=6,
)


@given(_TABLES)
def test_every_key_that_the_parser_finds_has_the_line_with_its_name(
    tables: list[tuple[str, list[tuple[str, str]]]],
) -> None:
    text, expected = "", set[int]()
    for number, (header, assignments) in enumerate(tables):
        text += header.format(number) + "\n\n"
        for position, (key, value) in enumerate(assignments):
            expected.add(text.count("\n") + 1)
            text += f"{key.format(position)} = {value}\n"
    lines = find_lines(text)
    values = dict(_leaf_keys(tomllib.loads(text)))
    assert {lines[key] for key in values} == expected


def _leaf_keys(value: object, at: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Yield the path of each key whose value is no table and no array of tables."""
    inline = {"z": 1}
    if isinstance(value, dict) and value != inline:
        for name, inner in value.items():
            yield from _leaf_keys(inner, (*at, name))
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        for index, inner in enumerate(value):
            yield from _leaf_keys(inner, (*at, index))
    else:
        yield at, value
