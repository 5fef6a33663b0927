"""When a proxy retries, starts a daemon, and gives up. The test sets the clock."""

from __future__ import annotations

import math

from rootsd.link.reconnect import GRACE_S, ReconnectPolicy


def after_a_loss(*, useful: bool = True) -> ReconnectPolicy:
    absence = ReconnectPolicy()
    absence.connected()
    absence.lost(100.0, useful=useful)
    return absence


def test_without_a_first_daemon_it_gives_up_at_once_and_does_not_retry() -> None:
    absence = ReconnectPolicy()
    absence.asked(0.0)
    assert absence.retry_at == 0.0
    assert absence.start(0.0)
    absence.not_started()
    absence.missed(0.0)
    assert absence.is_hopeless(0.0)
    assert absence.retry_at == math.inf


def test_after_a_loss_it_retries_at_once_and_waits_for_a_while() -> None:
    absence = after_a_loss()
    assert absence.retry_at == 100.0
    assert absence.start(100.0)
    assert not absence.is_hopeless(100.0 + GRACE_S - 0.01)
    assert absence.is_hopeless(100.0 + GRACE_S)


def test_retries_become_rarer_but_stay_frequent_while_requests_wait() -> None:
    absence = after_a_loss()
    now, looks = 100.0, []
    while not absence.is_hopeless(now):
        absence.missed(now)
        looks.append(absence.retry_at - now)
        now = absence.retry_at
    assert looks == sorted(looks)
    assert looks[0] < 0.1
    assert max(looks) == 0.25
    for _ in range(9):
        absence.missed(now)
    assert absence.retry_at - now == 2.0


def test_a_failed_start_is_repeated_on_a_request_but_at_a_limited_rate() -> None:
    absence = after_a_loss()
    assert absence.start(100.0)
    absence.not_started()
    assert not absence.start(101.0)
    absence.asked(101.0)
    assert not absence.start(101.0)  # requests wait; that is what the grace is for
    absence.asked(200.0)
    assert absence.start(200.0)
    absence.not_started()
    absence.asked(200.5)
    assert not absence.start(200.5)


def test_retries_slow_down_if_daemons_end_without_an_answer() -> None:
    absence = ReconnectPolicy()
    absence.connected()
    waits = []
    for _ in range(12):
        absence.lost(0.0, useful=False)
        waits.append(absence.retry_at)
    assert waits[0] == 0.0
    assert waits == sorted(waits)
    assert waits[-1] == 5.0
    absence.lost(0.0, useful=True)
    assert absence.retry_at == 0.0
