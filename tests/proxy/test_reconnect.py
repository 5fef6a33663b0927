"""When the bridge looks, starts a daemon, and gives up, on a clock of the test's own."""

from __future__ import annotations

import math

from rootsd.proxy.reconnect import GRACE_S, ReconnectPolicy


def after_a_loss(*, useful: bool = True) -> ReconnectPolicy:
    absence = ReconnectPolicy()
    absence.connected()
    absence.lost(100.0, useful=useful)
    return absence


def test_whoever_never_had_a_daemon_is_told_at_once_and_does_not_look_on() -> None:
    absence = ReconnectPolicy()
    absence.asked(0.0)
    assert absence.retry_at == 0.0
    assert absence.start(0.0)
    absence.not_started()
    absence.missed(0.0)
    assert absence.is_hopeless(0.0)
    assert absence.retry_at == math.inf


def test_after_a_loss_it_looks_at_once_and_waits_for_a_while() -> None:
    absence = after_a_loss()
    assert absence.retry_at == 100.0
    assert absence.start(100.0)
    assert not absence.is_hopeless(100.0 + GRACE_S - 0.01)
    assert absence.is_hopeless(100.0 + GRACE_S)


def test_looks_become_rarer_but_stay_frequent_while_somebody_waits() -> None:
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


def test_what_could_not_be_started_is_tried_again_when_the_client_asks_but_not_all_the_time() -> (
    None
):
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


def test_daemons_that_end_without_an_answer_are_left_alone_longer_and_longer() -> None:
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
