"""When the gate holds calls, and for how long at most."""

from __future__ import annotations

import math

import pytest

from rootsd.proxy.run.readiness import ReadinessGate, ServerProfile


def test_calls_wait_until_the_server_has_asked_and_settled() -> None:
    gate = ReadinessGate()
    assert not gate.is_closed
    gate.handshake_done(0.0)
    assert gate.is_closed
    gate.roots_requested(0.1)
    assert gate.deadline == math.inf, "how long the answer takes is not up to the server"
    gate.roots_sent(3.0, roots=1)
    gate.tick(3.04)
    assert gate.is_closed
    gate.tick(gate.deadline)
    assert not gate.is_closed
    assert (gate.profile, gate.deadline) == (ServerProfile.EARLY, math.inf)


def test_calls_wait_while_the_roots_are_outdated() -> None:
    gate = ReadinessGate()
    gate.roots_outdated = True
    assert gate.is_closed
    gate.open()
    assert gate.is_closed, "a server that is gone tells nothing about the daemon"
    assert gate.deadline == math.inf
    gate.roots_outdated = False
    assert not gate.is_closed


def test_a_server_that_is_slow_to_ask_has_longer_to_settle() -> None:
    took = []
    for slowness in (0.0, 0.1, 0.9):  # of a server that is known to ask
        gate = ReadinessGate(ServerProfile.EARLY)
        gate.handshake_done(0.0)
        gate.roots_requested(slowness)
        gate.roots_sent(5.0, roots=1)
        took.append(gate.deadline - 5.0)
    assert took == sorted(took)
    assert took[1] > 0.2 > took[0]
    assert took[2] < 0.5


def test_calls_wait_while_the_server_is_busy_with_its_roots() -> None:
    gate = ReadinessGate()
    at_work = [True, True, False]
    gate.is_busy = lambda: at_work.pop(0)
    gate.handshake_done(0.0)
    gate.roots_requested(0.0)
    gate.roots_sent(0.0, roots=1)
    looked_at = [gate.deadline]
    while gate.is_closed:
        gate.tick(gate.deadline)
        looked_at.append(gate.deadline)
    assert at_work == []
    assert looked_at[:3] == sorted(set(looked_at[:3]))


def test_an_always_busy_server_holds_calls_only_briefly() -> None:
    gate = ReadinessGate()
    gate.is_busy = lambda: True
    gate.handshake_done(0.0)
    gate.roots_requested(0.0)
    gate.roots_sent(0.0, roots=1)
    opened = 0.0
    while gate.is_closed:
        opened = gate.deadline
        gate.tick(opened)
    assert 0.5 < opened < 0.6


@pytest.mark.parametrize(
    ("known", "seconds", "then"),
    [
        (ServerProfile.UNKNOWN, 0.25, ServerProfile.SILENT),
        (ServerProfile.EARLY, 5.0, ServerProfile.SILENT),
        (ServerProfile.BOTH, 5.0, ServerProfile.IN_CALLS),
    ],
)
def test_a_server_that_does_not_ask_delays_calls_only_once_and_longer_if_it_is_known_to_ask(
    known: ServerProfile, seconds: float, then: ServerProfile
) -> None:
    gate = ReadinessGate(known)
    gate.handshake_done(0.0)
    gate.tick(seconds - 0.01)
    assert gate.is_closed
    gate.tick(seconds)
    assert (gate.is_closed, gate.profile) == (False, then)
    again = ReadinessGate(then)
    again.handshake_done(0.0)
    assert not again.is_closed


@pytest.mark.parametrize(
    ("when", "profile"), [(0.3, ServerProfile.EARLY), (60.0, ServerProfile.SILENT)]
)
def test_the_profile_is_updated_by_what_the_server_does(
    when: float, profile: ServerProfile
) -> None:
    gate = ReadinessGate(ServerProfile.SILENT)
    gate.handshake_done(0.0)
    gate.roots_requested(when)
    assert gate.profile is profile


def test_more_roots_need_more_time_to_settle() -> None:
    deadlines = []
    for roots in (1, 1000):
        gate = ReadinessGate()
        gate.handshake_done(0.0)
        gate.roots_requested(0.0)
        gate.roots_sent(0.0, roots)
        deadlines.append(gate.deadline)
    assert deadlines[0] < deadlines[1] < 1.0


def test_a_change_holds_calls_only_if_the_server_reads_roots() -> None:
    gate = ReadinessGate(ServerProfile.SILENT)
    gate.handshake_done(0.0)
    gate.roots_changed(10.0)
    assert not gate.is_closed
    gate.roots_requested(11.0)
    gate.roots_sent(11.0, roots=1)
    assert not gate.is_closed, "it asked of its own accord: nothing was promised"
    gate.roots_changed(20.0)
    assert gate.is_closed


def test_a_server_that_ignores_a_change_is_stale_until_it_asks() -> None:
    gate = ReadinessGate(ServerProfile.SILENT)
    gate.handshake_done(0.0)
    gate.roots_requested(11.0)
    gate.roots_changed(20.0)
    gate.tick(21.0)
    assert (gate.is_closed, gate.stale, gate.profile) == (False, True, ServerProfile.SILENT)
    gate.roots_requested(30.0)
    assert not gate.stale


def test_a_change_during_an_answer_waits_for_another_request() -> None:
    gate = ReadinessGate()
    gate.handshake_done(0.0)
    gate.roots_requested(0.1)
    gate.roots_sent(0.1, roots=1)
    gate.roots_changed(0.12)
    gate.tick(0.2)
    assert gate.is_closed
    gate.roots_requested(0.3)
    gate.roots_sent(0.3, roots=1)
    gate.tick(gate.deadline)
    assert not gate.is_closed


def test_it_can_be_opened_at_once() -> None:
    gate = ReadinessGate()
    gate.handshake_done(0.0)
    gate.open()
    assert (gate.is_closed, gate.deadline) == (False, math.inf)


# Servers that ask in calls


@pytest.mark.parametrize(
    ("known", "after_one", "after_two"),
    [
        (ServerProfile.UNKNOWN, ServerProfile.SILENT, ServerProfile.IN_CALLS),
        (ServerProfile.SILENT, ServerProfile.SILENT, ServerProfile.IN_CALLS),
        (ServerProfile.IN_CALLS, ServerProfile.IN_CALLS, ServerProfile.IN_CALLS),
        (ServerProfile.EARLY, ServerProfile.EARLY, ServerProfile.BOTH),
        (ServerProfile.BOTH, ServerProfile.BOTH, ServerProfile.BOTH),
    ],
)
def test_one_question_in_a_call_does_not_show_that_a_server_asks_in_each(
    known: ServerProfile, after_one: ServerProfile, after_two: ServerProfile
) -> None:
    learnt: list[ServerProfile] = []
    gate = ReadinessGate(known, learnt.append)
    gate.roots_requested_in_call()
    assert (gate.profile, gate.may_ask_again) == (after_one, True)
    gate.asks_in_each_call()
    assert (gate.profile, gate.may_ask_again) == (after_two, False)
    assert learnt == sorted({after_one, after_two} - {known}, key=[after_one, after_two].index)


@pytest.mark.parametrize(
    ("known", "then"),
    [
        (ServerProfile.IN_CALLS, ServerProfile.SILENT),
        (ServerProfile.SILENT, ServerProfile.SILENT),
        (ServerProfile.BOTH, ServerProfile.EARLY),
        (ServerProfile.EARLY, ServerProfile.EARLY),
    ],
)
def test_a_server_that_keeps_its_roots_is_stale_whatever_was_known_of_it(
    known: ServerProfile, then: ServerProfile
) -> None:
    gate = ReadinessGate(known)
    gate.roots_requested_in_call()
    gate.keeps_roots()
    assert (gate.profile, gate.stale, gate.may_ask_again) == (then, True, False)


def test_a_server_that_asks_in_each_call_holds_none_and_is_never_stale() -> None:
    gate = ReadinessGate(ServerProfile.IN_CALLS)
    gate.handshake_done(0.0)
    assert not gate.is_closed
    gate.roots_requested_in_call()
    gate.roots_changed(10.0)
    gate.roots_changed_untold()
    assert (gate.is_closed, gate.stale) == (False, False)


def test_asking_in_each_call_opens_a_gate_closed_by_a_change() -> None:
    gate = ReadinessGate()
    gate.handshake_done(0.0)
    gate.tick(1.0)
    gate.roots_requested(2.0)
    gate.roots_changed(3.0)
    assert gate.is_closed
    gate.asks_in_each_call()
    assert not gate.is_closed


def test_a_change_holds_calls_of_a_server_that_promised_nothing_only_briefly() -> None:
    for ask, seconds in ((ReadinessGate.roots_requested_in_call, 0.25), (_asked_early, 1.0)):
        gate = ReadinessGate()
        gate.handshake_done(0.0)
        ask(gate)
        gate.roots_changed(10.0)
        assert gate.deadline == 10.0 + seconds
        gate.tick(gate.deadline)
        assert (gate.is_closed, gate.stale) == (False, True)


def _asked_early(gate: ReadinessGate) -> None:
    gate.roots_requested(0.1)
    gate.roots_sent(0.1, roots=1)


def test_a_server_that_nobody_can_tell_is_stale_at_once_if_it_ever_asked() -> None:
    gate = ReadinessGate()
    gate.roots_changed_untold()
    assert not gate.stale
    gate.roots_requested_in_call()
    gate.roots_changed_untold()
    assert (gate.is_closed, gate.stale) == (False, True)


def test_a_server_that_does_both_is_awaited_after_the_handshake_and_never_stale() -> None:
    gate = ReadinessGate(ServerProfile.IN_CALLS)
    gate.handshake_done(0.0)
    gate.roots_requested(0.1)
    assert gate.profile is ServerProfile.BOTH
    again = ReadinessGate(ServerProfile.BOTH)
    again.handshake_done(0.0)
    assert again.is_closed
    again.roots_requested(0.1)
    again.roots_sent(0.1, roots=1)
    again.tick(again.deadline)
    again.roots_changed(10.0)
    again.tick(11.0)
    assert (again.is_closed, again.stale) == (False, False)


def test_after_an_ignored_change_the_next_one_holds_nothing_also_after_a_restart() -> None:
    gate = ReadinessGate()
    gate.handshake_done(0.0)
    _asked_early(gate)
    gate.tick(gate.deadline)
    gate.roots_changed(10.0)
    assert gate.is_closed
    gate.tick(11.0)
    gate.roots_changed(20.0)
    assert (gate.is_closed, gate.stale) == (False, True)
    gate.handshake_done(21.0)
    gate.roots_requested(21.1)
    gate.roots_sent(21.1, roots=1)
    gate.tick(gate.deadline)
    gate.roots_changed(30.0)
    assert (gate.is_closed, gate.stale) == (False, True)
    gate.roots_requested(31.0)
    gate.roots_changed(40.0)
    assert gate.is_closed, "it asks after all"
