"""The line of each key in a TOML text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from rootsd.config.toml_lines import KeyPath, find_key_lines

TEXT = '''\
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
    tomllib.loads(TEXT)
    assert find_key_lines(TEXT) == {
        ("title",): 2,
        ("quoted.key",): 6,
        ("dotted",): 7,
        ("dotted", "inner"): 7,
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
    assert find_key_lines("a = 1\r\n\r\n[t]\r\nb = 2\r\n")["t", "b"] == 4


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
    lines = find_key_lines(text)
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
