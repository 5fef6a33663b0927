"""The caches that all sessions share."""

from __future__ import annotations

import pytest

from rootsd.mcp.cache import cached_by_identity, cached_each_by_identity


def test_an_object_is_computed_once_while_the_cache_has_room_and_an_equal_one_again() -> None:
    seen: list[object] = []

    @cached_by_identity(size=1)
    def joined(one: str, other: str) -> str:
        seen.append((one, other))
        return one + other

    again = "".join(["a", "1"])
    first = "".join(["a", "1"])
    for one, other in ((first, "b"), (first, "b"), ("b", first), (again, "b"), (first, "b")):
        assert joined(one, other) == one + other
    assert seen == [(first, "b"), ("b", first), (again, "b"), (first, "b")]


@pytest.mark.parametrize(("size", "computed"), [(2, "abc"), (1, "abca")])
def test_only_values_that_no_kept_sequence_has_are_computed(size: int, computed: str) -> None:
    seen: list[str] = []

    @cached_each_by_identity(size=size)
    def upper(value: str) -> str:
        seen.append(value)
        return value.upper()

    assert upper(("a", "b")) == ["A", "B"]
    assert upper(("b", "c")) == ["B", "C"]
    assert upper(("c", "a")) == ["C", "A"]
    assert "".join(seen) == computed
