"""How often something may be done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.throttle import TokenBucket, TokenBuckets


def test_a_burst_is_free_and_what_follows_waits_its_turn() -> None:
    allowance = TokenBucket(burst=2, per_second=0.5)
    assert [allowance.wait(100.0) for _ in range(3)] == [0.0, 0.0, 2.0]
    assert allowance.wait(101.0) == pytest.approx(1.0)
    assert allowance.wait(102.0) == 0.0
    assert allowance.wait(102.0) == pytest.approx(2.0)


def test_rest_saves_up_no_more_than_a_burst() -> None:
    allowance = TokenBucket(burst=2, per_second=1.0)
    allowance.wait(0.0)
    assert [allowance.wait(1e6) > 0 for _ in range(3)] == [False, False, True]


@given(st.lists(st.floats(0, 10), max_size=50))
def test_no_rhythm_gets_more_than_the_burst_and_the_rate(pauses: list[float]) -> None:
    allowance = TokenBucket(burst=3, per_second=0.7)
    now, had = 0.0, 0
    for pause in pauses:
        now += pause
        had += allowance.wait(now) == 0.0
    assert had <= 3 + 0.7 * now + 1e-6


def test_each_who_asks_has_a_bucket_of_its_own() -> None:
    buckets = TokenBuckets(lambda: TokenBucket(burst=1, per_second=1.0))
    assert [buckets.of(7).wait(0.0) == 0.0 for _ in range(3)] == [True, False, False]
    assert buckets.of(8).wait(0.0) == 0.0


def test_of_too_many_the_one_used_longest_ago_is_forgotten() -> None:
    buckets = TokenBuckets(lambda: TokenBucket(burst=1, per_second=1.0), most=2)
    first, second = buckets.of(1), buckets.of(2)
    assert buckets.of(1) is first
    buckets.of(3)
    assert buckets.of(1) is first
    assert buckets.of(2) is not second
