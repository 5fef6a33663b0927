"""The caches that all sessions share."""

from __future__ import annotations

from rootsd.mcp.cache import cached_by_identity, cached_each_by_identity


def test_an_object_is_computed_once_and_an_equal_object_again() -> None:
    seen: list[object] = []

    @cached_by_identity(size=4)
    def length(values: tuple[int, ...]) -> int:
        seen.append(values)
        return len(values)

    first = (1, 2)
    equal = tuple(iter(first))
    assert (length(first), length(first), length(equal)) == (2, 2, 2)
    assert len(seen) == 2


def test_the_order_of_arguments_matters() -> None:
    @cached_by_identity(size=4)
    def pair(one: str, other: str) -> str:
        return one + other

    assert (pair("a", "b"), pair("b", "a")) == ("ab", "ba")


def test_the_cache_is_bounded() -> None:
    seen: list[object] = []

    @cached_by_identity(size=1)
    def same(value: list[int]) -> list[int]:
        seen.append(value)
        return value

    first, second = [1], [2]
    for value in (first, second, first):
        assert same(value) is value
    assert seen == [[1], [2], [1]]


def test_only_new_values_of_a_sequence_are_computed() -> None:
    seen: list[str] = []

    @cached_each_by_identity(size=2)
    def upper(value: str) -> str:
        seen.append(value)
        return value.upper()

    assert upper(("a", "b")) == ["A", "B"]
    assert upper(("b", "c")) == ["B", "C"]
    assert upper(("c", "a")) == ["C", "A"]
    assert seen == ["a", "b", "c"]


def test_values_of_old_sequences_are_dropped() -> None:
    seen: list[str] = []

    @cached_each_by_identity(size=1)
    def same(value: str) -> str:
        seen.append(value)
        return value

    for values in (("a", "b"), ("b",), ("a",)):
        assert same(values) == list(values)
    assert seen == ["a", "b", "a"]
