"""What is computed once for all sessions."""

from __future__ import annotations

from rootsd.mcp.cache import cached_by_identity, cached_each_by_identity


def test_one_object_is_computed_once_and_an_equal_one_again() -> None:
    seen: list[object] = []

    @cached_by_identity(size=4)
    def length(values: tuple[int, ...]) -> int:
        seen.append(values)
        return len(values)

    first = (1, 2)
    equal = tuple(iter(first))
    assert (length(first), length(first), length(equal)) == (2, 2, 2)
    assert len(seen) == 2


def test_arguments_are_told_apart_by_their_place() -> None:
    @cached_by_identity(size=4)
    def pair(one: str, other: str) -> str:
        return one + other

    assert (pair("a", "b"), pair("b", "a")) == ("ab", "ba")


def test_no_more_is_kept_than_was_said() -> None:
    seen: list[object] = []

    @cached_by_identity(size=1)
    def same(value: list[int]) -> list[int]:
        seen.append(value)
        return value

    first, second = [1], [2]
    for value in (first, second, first):
        assert same(value) is value
    assert seen == [[1], [2], [1]]


def test_of_many_values_only_those_that_came_are_computed() -> None:
    seen: list[str] = []

    @cached_each_by_identity(size=2)
    def upper(value: str) -> str:
        seen.append(value)
        return value.upper()

    assert upper(("a", "b")) == ["A", "B"]
    assert upper(("b", "c")) == ["B", "C"]
    assert upper(("c", "a")) == ["C", "A"]
    assert seen == ["a", "b", "c"]


def test_of_many_values_those_of_older_answers_are_given_up() -> None:
    seen: list[str] = []

    @cached_each_by_identity(size=1)
    def same(value: str) -> str:
        seen.append(value)
        return value

    for values in (("a", "b"), ("b",), ("a",)):
        assert same(values) == list(values)
    assert seen == ["a", "b", "a"]
