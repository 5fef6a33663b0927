"""The reader of YAML lists returns what a YAML parser does, or refuses."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from rootsd.disk.yaml_lists import UnreadYaml, yaml_list


def _parsed(text: str) -> list[str] | None:
    """Return the list `packages` as ruamel.yaml reads it; None if it refuses the text."""
    try:
        found: Any = YAML(typ="base", pure=True).load(text)
    except (YAMLError, MarkedYAMLError, ValueError, AttributeError, TypeError):
        return None
    packages = found.get("packages", []) if isinstance(found, dict) else []
    return packages if isinstance(packages, list) else []


def _read(text: str) -> list[str] | None:
    try:
        return yaml_list(text, "packages")
    except UnreadYaml:
        return None


_PATTERNS = [
    "packages/*",
    "./apps/**",
    "!**/test/**",
    "a",
    "{x,y}/*",
    "it's",
    "a#b",
    "@s/b",
    "a b",
]
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [*_PATTERNS, "", "- x", "a: b", "[", "|", "&x", 'say "x"', "two\nlines", "# c"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "my key", "packages"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    packages=st.lists(st.sampled_from(_PATTERNS), min_size=1, max_size=4),
    before=st.dictionaries(st.sampled_from(["catalog", "x-y", "onlyBuilt"]), _VALUES, max_size=2),
    after=st.dictionaries(st.sampled_from(["overrides", "z"]), _VALUES, max_size=2),
    flow=st.sampled_from([None, False, True]),
    indent=st.sampled_from([(2, 0), (4, 2)]),
    width=st.sampled_from([40, 4_000]),
    quote=st.booleans(),
)
def test_what_a_program_writes_is_read_as_a_parser_does(
    packages: list[str],
    before: dict[str, Any],
    after: dict[str, Any],
    flow: bool | None,
    indent: tuple[int, int],
    width: int,
    quote: bool,
) -> None:
    yaml = YAML(typ="safe" if flow is None else "rt", pure=True)
    yaml.default_flow_style = flow
    yaml.width = width
    if flow is not None:
        yaml.indent(mapping=2, sequence=indent[0], offset=indent[1])
        yaml.preserve_quotes = quote
    stream = io.StringIO()
    yaml.dump({**before, "packages": packages, **after}, stream)
    text = stream.getvalue()
    read = _read(text)
    assert read in (None, packages), text
    if flow is not True and width > 100 and not quote and not before and not after:
        assert read == packages or any("'" in each for each in packages), text


_PIECES = st.sampled_from(
    [
        "packages:", "packages: ", "\"packages\": ", "x:", "x: ", "- ", "  - ", " ", "\n", "\n",
        "\n  ", "[", "]", "{", "}", ", ", ",", ": ", "'", "\"", "a/*", "b", "!c", "# d", " # e",
        "#f", "|", ">", "&g", "*g", "---", "...", "''", "\\", "\\x41", "?", "? ", "it's", "\t",
        "%Y",
    ]
)  # fmt: skip


@given(
    st.lists(_PIECES, max_size=14).map("".join),
    st.sampled_from(["", "packages:\n", "packages: ["]),
)
@example("packages: [a]\nx: 'b\npackages: [c]'\n", "")
@example("x: {\npackages: [a]}\npackages: [b]\n", "")
@example("- a 'b: 'c\npackages: [a]'\n", "")
@example("--- a: b\npackages:\n- a\n", "")
@example("x: |\n  packages:\n- a\n", "")
@example("packages:\n- a\n b\n", "")
@example("packages:\n- a: b\n", "")
@example("packages:\n- # d\n", "")
@example("packages: # c\n- a #b\n- 'c'#d\n", "")
@example("\ufeffpackages: [a]\n", "")
def test_no_text_is_read_as_another_list(text: str, start: str) -> None:
    text = start + text
    read = _read(text)
    parsed = _parsed(text)
    # The reader does not look for each error in a text.
    assert read is None or parsed is None or read == parsed, text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\npackages:\n  - 'a/*'\n  - b # c\n\n  # d\n  - \"e\"\nx: y\n", ["a/*", "b", "e"]),
        ("packages:\n- a\n- b\n", ["a", "b"]),
        ("packages: [a, 'b',  \"it's\"] # d\n", ["a", "b", "it's"]),
        ("catalog:\n  '@a/b': npm:c@^1\n  d: [e, f]\n'packages':\n  - '!a'\n", ["!a"]),
        ("packages:\r\n- a\r\n", ["a"]),
        ("packages: []\n", []),
        ("other: [a]\n", []),
        ("", []),
    ],
)
def test_usual_files_are_read(text: str, expected: list[str]) -> None:
    assert _read(text) == expected
    assert (_parsed(text) or []) == expected
