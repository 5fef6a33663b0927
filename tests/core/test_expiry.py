from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from rootsd.core.expiry import ClockReading, due_ns
from rootsd.core.model import Decision, Verdict
from support.sample_decisions import NOON, PERSON

HOUR = timedelta(hours=1)
START = ClockReading(NOON, "this start", 5 * 10**9)
APPROVED = Decision(Verdict.APPROVED, PERSON, NOON, expires=START.after(3_600))
OTHER = replace(START, boot="another start", since_boot_ns=7)


def test_an_end_is_the_same_moment_by_both_clocks() -> None:
    assert APPROVED.expires is not None
    assert APPROVED.expires.at == NOON + HOUR
    assert APPROVED.expires.since_boot_ns == 3_605 * 10**9


def test_an_approval_without_an_end_is_never_due() -> None:
    assert due_ns(replace(APPROVED, expires=None), START) is None


@pytest.mark.parametrize("years", [-10, -1, 0, 1, 10])
def test_no_jump_of_the_wall_clock_moves_the_end(years: int) -> None:
    jumped = replace(START, wall=NOON + timedelta(days=365 * years))
    assert due_ns(APPROVED, jumped) == 3_605 * 10**9


@pytest.mark.parametrize(
    ("wall", "left_s"),
    [
        pytest.param(NOON, 3_600, id="at once"),
        pytest.param(NOON + HOUR / 2, 1_800, id="half the time was slept off"),
        pytest.param(NOON + HOUR, 0, id="the time is over"),
        pytest.param(NOON + 3 * HOUR, -7_200, id="long over"),
        pytest.param(NOON - HOUR, 0, id="a clock that stands before the approval"),
    ],
)
def test_after_a_restart_of_the_machine_the_wall_clock_counts(wall: object, left_s: int) -> None:
    now = replace(OTHER, wall=wall)  # type: ignore[arg-type]
    assert due_ns(APPROVED, now) == 7 + left_s * 10**9


def test_an_unknown_boot_id_matches_no_boot() -> None:
    nameless = replace(START, boot="", since_boot_ns=0)
    approved = replace(APPROVED, expires=nameless.after(3_600))
    assert due_ns(approved, replace(nameless, wall=NOON + HOUR, since_boot_ns=9)) == 9
