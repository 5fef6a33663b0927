"""A change time counts as old only if no step of the clock can have made it look old."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rootsd.disk.file_clock import FileClock

_SECOND = 10**9


class Clocks:
    """A clock that a test sets, and one that only runs."""

    def __init__(self) -> None:
        self.elapsed = 5 * _SECOND
        self.ahead = 1_000 * _SECOND
        self.file = FileClock(self.now, lambda: self.elapsed)

    def now(self) -> int:
        return self.elapsed + self.ahead

    def is_old(self, changed: int) -> bool:
        return changed < self.file.cutoff()


def test_a_change_is_old_after_two_seconds() -> None:
    clocks = Clocks()
    changed = clocks.now()
    assert not clocks.is_old(changed)
    clocks.elapsed += 3 * _SECOND
    assert clocks.is_old(changed)


def test_a_step_forward_makes_no_change_old_and_a_step_back_makes_none_old_for_ever() -> None:
    clocks = Clocks()
    changed = clocks.now()
    clocks.ahead += 3_600 * _SECOND
    assert not clocks.is_old(changed)
    clocks.elapsed += 3 * _SECOND
    assert clocks.is_old(changed)
    changed = clocks.now()
    clocks.ahead -= 3_600 * _SECOND
    clocks.elapsed += 60 * _SECOND
    assert not clocks.is_old(changed)
    assert not clocks.is_old(2**62)
    assert clocks.is_old(-(2**62))
    changed = clocks.now()
    clocks.elapsed += 3 * _SECOND
    assert clocks.is_old(changed)


@given(
    st.lists(
        st.tuples(st.integers(0, 4 * _SECOND), st.integers(-(2**50), 2**50), st.booleans()),
        max_size=30,
    )
)
def test_no_change_of_the_last_two_seconds_is_old_whatever_sets_the_clock(
    steps: list[tuple[int, int, bool]],
) -> None:
    """The clock is read at least after each step, as `RootVerifier` does before each answer."""
    clocks = Clocks()
    changes: list[tuple[int, int]] = []
    for passed, step, is_changed in steps:
        clocks.elapsed += passed
        clocks.file.cutoff()
        if is_changed:
            changes.append((clocks.elapsed, clocks.now()))
        clocks.ahead += step
        for when, changed in changes:
            if clocks.elapsed - when <= 1.5 * _SECOND:
                assert not clocks.is_old(changed)
