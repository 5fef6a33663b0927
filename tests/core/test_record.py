"""The codec of records: each value has one JSON form, and a wrong one is refused with its key."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypedDict

import pytest

from rootsd.core.record import (
    BadRecord,
    Hex,
    Text,
    field_docs,
    from_json,
    from_line,
    to_json,
    to_line,
)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Plain(TypedDict):
    x: int


class Leaf(NamedTuple):
    path: bytes
    inner: Leaf | None = None


class Tree(NamedTuple):
    name: str
    color: Color
    handle: Hex | None
    leaves: tuple[Leaf, ...] = ()
    masked: frozenset[bytes] = frozenset()
    rings: Annotated[int, "How many."] = 0
    is_old: bool = False
    plain: Plain | None = None


TREE = Tree(
    "oak", Color.BLUE, b"\x00\xff", (Leaf(b"/a\xff", Leaf(b"/b")),), frozenset({b"/z", b"/y"}), 3,
    True, {"x": 1},
)  # fmt: skip
JSON = {
    "name": "oak", "color": "blue", "handle": "00ff",
    "leaves": [{"path": "/a\udcff", "inner": {"path": "/b", "inner": None}}],
    "masked": ["/y", "/z"], "rings": 3, "is_old": True, "plain": {"x": 1},
}  # fmt: skip


def test_a_record_survives_the_way_through_json() -> None:
    assert to_json(TREE) == JSON
    assert from_json(Tree, JSON) == TREE


def test_unknown_keys_are_ignored_and_missing_ones_have_their_default() -> None:
    least = {"name": "oak", "color": "red", "handle": None, "later": 1}
    assert from_json(Tree, least) == Tree("oak", Color.RED, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", 1), ("name", None), ("color", "green"), ("color", None), ("handle", "0g"),
        ("handle", 1), ("leaves", {}), ("leaves", [1]), ("leaves", [{"path": "a"}]),
        ("leaves", [{"path": "/a", "inner": {}}]), ("masked", ["/a/../b"]), ("masked", [None]),
        ("rings", True), ("rings", 1.0), ("rings", "1"), ("is_old", 1), ("is_old", None),
        ("plain", []),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_key(key: str, value: object) -> None:
    with pytest.raises(BadRecord, match=f"^{key}: "):
        from_json(Tree, {**JSON, key: value})


def test_a_missing_key_and_another_value_than_an_object_are_refused() -> None:
    with pytest.raises(BadRecord, match="color is missing"):
        from_json(Tree, {"name": "oak"})
    with pytest.raises(BadRecord, match="not an object"):
        from_json(Tree, [])


class Imaginary(NamedTuple):
    at: complex


class Pair(NamedTuple):
    at: tuple[int, str]


class Either(NamedTuple):
    at: int | str


@pytest.mark.parametrize("odd", [Imaginary(1j), Pair((1, "")), Either(1)])
def test_a_field_without_a_json_form_is_an_error_of_the_program(odd: tuple[object]) -> None:
    with pytest.raises(TypeError, match="a record cannot hold"):
        to_json(odd)


def test_a_field_carries_its_description() -> None:
    assert field_docs(Tree)["rings"] == "How many."
    assert field_docs(Tree)["name"] == ""


class Bytes(NamedTuple):
    words: Text
    at: float
    more: Mapping[Text, int] = MappingProxyType({})


def test_any_bytes_and_numbers_survive() -> None:
    odd = Bytes(b"../\xff\n", 1.5, {b"\xfe": 2})
    assert from_line(Bytes, to_line(odd)) == odd
    assert from_json(Bytes, {"words": "", "at": 2}) == Bytes(b"", 2.0)
    for wrong in (
        {"words": "\ud800", "at": 1.0},
        {"words": "", "at": True},
        {"words": "", "at": 1.0, "more": {"a": "b"}},
        {"words": "", "at": 1.0, "more": []},
    ):
        with pytest.raises(BadRecord):
            from_json(Bytes, wrong)
    with pytest.raises(BadRecord, match="not JSON"):
        from_line(Bytes, b"{")
