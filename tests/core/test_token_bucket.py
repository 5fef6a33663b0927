"""Token buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.throttle import TokenBucket, TokenBuckets


def test_a_burst_passes_and_later_calls_wait() -> None:
    allowance = TokenBucket(burst=2, per_second=0.5)
    assert [allowance.wait(100.0) for _ in range(3)] == [0.0, 0.0, 2.0]
    assert allowance.wait(101.0) == pytest.approx(1.0)
    assert allowance.wait(102.0) == 0.0
    assert allowance.wait(102.0) == pytest.approx(2.0)


def test_a_bucket_never_holds_more_than_a_burst() -> None:
    allowance = TokenBucket(burst=2, per_second=1.0)
    allowance.wait(0.0)
    assert [allowance.wait(1e6) > 0 for _ in range(3)] == [False, False, True]


@given(st.lists(st.floats(0, 10), max_size=50))
def test_no_pattern_of_calls_exceeds_burst_and_rate(pauses: list[float]) -> None:
    allowance = TokenBucket(burst=3, per_second=0.7)
    now, had = 0.0, 0
    for pause in pauses:
        now += pause
        had += allowance.wait(now) == 0.0
    assert had <= 3 + 0.7 * now + 1e-6


def test_each_key_has_its_own_bucket() -> None:
    buckets = TokenBuckets(lambda: TokenBucket(burst=1, per_second=1.0))
    assert [buckets.of(7).wait(0.0) == 0.0 for _ in range(3)] == [True, False, False]
    assert buckets.of(8).wait(0.0) == 0.0


def test_the_least_recently_used_bucket_is_dropped() -> None:
    buckets = TokenBuckets(lambda: TokenBucket(burst=1, per_second=1.0), most=2)
    first, second = buckets.of(1), buckets.of(2)
    assert buckets.of(1) is first
    buckets.of(3)
    assert buckets.of(1) is first
    assert buckets.of(2) is not second
