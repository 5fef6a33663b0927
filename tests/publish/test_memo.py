"""What is computed once for all sessions."""

from __future__ import annotations

from rootsd.publish.memo import shared


def test_one_object_is_computed_once_and_an_equal_one_again() -> None:
    seen: list[object] = []

    @shared(size=4)
    def length(values: tuple[int, ...]) -> int:
        seen.append(values)
        return len(values)

    first = (1, 2)
    equal = tuple(iter(first))
    assert (length(first), length(first), length(equal)) == (2, 2, 2)
    assert len(seen) == 2


def test_arguments_are_told_apart_by_their_place() -> None:
    @shared(size=4)
    def pair(one: str, other: str) -> str:
        return one + other

    assert (pair("a", "b"), pair("b", "a")) == ("ab", "ba")


def test_no_more_is_kept_than_was_said() -> None:
    seen: list[object] = []

    @shared(size=1)
    def same(value: list[int]) -> list[int]:
        seen.append(value)
        return value

    first, second = [1], [2]
    for value in (first, second, first):
        assert same(value) is value
    assert seen == [[1], [2], [1]]
