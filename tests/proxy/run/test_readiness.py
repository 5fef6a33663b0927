"""When calls are held, and for how long at most."""

from __future__ import annotations

import math

import pytest

from rootsd.proxy.run.readiness import ReadinessGate, ServerProfile


def test_calls_wait_until_the_server_has_asked_and_settled() -> None:
    barrier = ReadinessGate()
    assert not barrier.closed
    barrier.begin(0.0)
    assert barrier.closed
    barrier.asked(0.1)
    assert barrier.deadline == math.inf, "how long the answer takes is not up to the server"
    barrier.answered(3.0, roots=1)
    barrier.tick(3.04)
    assert barrier.closed
    barrier.tick(barrier.deadline)
    assert not barrier.closed
    assert (barrier.habit, barrier.deadline) == (ServerProfile.ASKS, math.inf)


def test_where_it_is_not_known_which_roots_there_are_calls_wait_for_that_alone() -> None:
    barrier = ReadinessGate()
    barrier.in_doubt = True
    assert barrier.closed
    barrier.open()
    assert barrier.closed, "a server that is gone tells nothing about the daemon"
    assert barrier.deadline == math.inf
    barrier.in_doubt = False
    assert not barrier.closed


def test_a_server_that_is_slow_to_ask_has_longer_to_settle() -> None:
    took = []
    for slowness in (0.0, 0.1, 0.9):
        barrier = ReadinessGate(ServerProfile.ASKS)
        barrier.begin(0.0)
        barrier.asked(slowness)
        barrier.answered(5.0, roots=1)
        took.append(barrier.deadline - 5.0)
    assert took == sorted(took)
    assert took[1] > 0.2 > took[0]
    assert took[2] < 0.5


def test_calls_wait_on_while_the_server_is_at_work_with_its_roots() -> None:
    barrier = ReadinessGate()
    at_work = [True, True, False]
    barrier.is_at_work = lambda: at_work.pop(0)
    barrier.begin(0.0)
    barrier.asked(0.0)
    barrier.answered(0.0, roots=1)
    looked_at = [barrier.deadline]
    while barrier.closed:
        barrier.tick(barrier.deadline)
        looked_at.append(barrier.deadline)
    assert at_work == []
    assert looked_at[:3] == sorted(set(looked_at[:3]))


def test_one_that_is_always_at_work_holds_them_for_a_moment_only() -> None:
    barrier = ReadinessGate()
    barrier.is_at_work = lambda: True
    barrier.begin(0.0)
    barrier.asked(0.0)
    barrier.answered(0.0, roots=1)
    opened = 0.0
    while barrier.closed:
        opened = barrier.deadline
        barrier.tick(opened)
    assert 0.5 < opened < 0.6


def test_a_server_that_never_asks_is_waited_for_once() -> None:
    barrier = ReadinessGate()
    barrier.begin(0.0)
    barrier.tick(0.99)
    assert barrier.closed
    barrier.tick(1.0)
    assert not barrier.closed
    assert barrier.habit is ServerProfile.SILENT
    again = ReadinessGate(barrier.habit)
    again.begin(0.0)
    assert not again.closed


def test_one_that_is_known_to_ask_gets_more_time() -> None:
    barrier = ReadinessGate(ServerProfile.ASKS)
    barrier.begin(0.0)
    barrier.tick(4.9)
    assert barrier.closed
    barrier.tick(5.0)
    assert (barrier.closed, barrier.habit) == (False, ServerProfile.SILENT)


@pytest.mark.parametrize(
    ("when", "habit"), [(0.3, ServerProfile.ASKS), (60.0, ServerProfile.SILENT)]
)
def test_what_was_learnt_is_learnt_anew(when: float, habit: ServerProfile) -> None:
    barrier = ReadinessGate(ServerProfile.SILENT)
    barrier.begin(0.0)
    barrier.asked(when)
    assert barrier.habit is habit


def test_more_roots_take_longer_to_look_at() -> None:
    deadlines = []
    for roots in (1, 1000):
        barrier = ReadinessGate()
        barrier.begin(0.0)
        barrier.asked(0.0)
        barrier.answered(0.0, roots)
        deadlines.append(barrier.deadline)
    assert deadlines[0] < deadlines[1] < 1.0


def test_a_change_holds_calls_of_those_that_read_roots_alone() -> None:
    barrier = ReadinessGate(ServerProfile.SILENT)
    barrier.begin(0.0)
    barrier.change(10.0)
    assert not barrier.closed
    barrier.asked(11.0)
    barrier.answered(11.0, roots=1)
    assert not barrier.closed, "it asked of its own accord: nothing was promised"
    barrier.change(20.0)
    assert barrier.closed


def test_a_server_that_does_not_mind_a_change_is_stale_until_it_asks() -> None:
    barrier = ReadinessGate(ServerProfile.SILENT)
    barrier.begin(0.0)
    barrier.asked(11.0)
    barrier.change(20.0)
    barrier.tick(21.0)
    assert (barrier.closed, barrier.stale, barrier.habit) == (False, True, ServerProfile.SILENT)
    barrier.asked(30.0)
    assert not barrier.stale


def test_a_change_during_the_answer_waits_for_another_question() -> None:
    barrier = ReadinessGate()
    barrier.begin(0.0)
    barrier.asked(0.1)
    barrier.answered(0.1, roots=1)
    barrier.change(0.12)
    barrier.tick(0.2)
    assert barrier.closed
    barrier.asked(0.3)
    barrier.answered(0.3, roots=1)
    barrier.tick(barrier.deadline)
    assert not barrier.closed


def test_it_can_be_opened_at_once() -> None:
    barrier = ReadinessGate()
    barrier.begin(0.0)
    barrier.open()
    assert (barrier.closed, barrier.deadline) == (False, math.inf)


# Servers that ask in calls


@pytest.mark.parametrize(
    ("known", "then"),
    [
        (ServerProfile.UNKNOWN, ServerProfile.IN_CALLS),
        (ServerProfile.SILENT, ServerProfile.IN_CALLS),
        (ServerProfile.IN_CALLS, ServerProfile.IN_CALLS),
        (ServerProfile.ASKS, ServerProfile.BOTH),
        (ServerProfile.BOTH, ServerProfile.BOTH),
    ],
)
def test_that_a_server_asks_in_calls_is_learnt_at_once(
    known: ServerProfile, then: ServerProfile
) -> None:
    learnt: list[ServerProfile] = []
    barrier = ReadinessGate(known, learnt.append)
    barrier.asked_in_call()
    assert barrier.habit is then
    assert learnt == ([] if known is then else [then])


def test_a_server_that_asks_in_calls_holds_none_and_is_never_stale() -> None:
    barrier = ReadinessGate(ServerProfile.IN_CALLS)
    barrier.begin(0.0)
    assert not barrier.closed
    barrier.asked_in_call()
    barrier.change(10.0)
    assert (barrier.closed, barrier.stale) == (False, False)


def test_one_that_was_held_for_a_change_is_let_go_when_it_asks_in_a_call() -> None:
    barrier = ReadinessGate()
    barrier.begin(0.0)
    barrier.tick(1.0)
    barrier.asked(2.0)
    barrier.change(3.0)
    assert barrier.closed
    barrier.asked_in_call()
    assert not barrier.closed


def test_one_that_does_both_is_waited_for_after_the_handshake_and_never_stale() -> None:
    barrier = ReadinessGate(ServerProfile.IN_CALLS)
    barrier.begin(0.0)
    barrier.asked(0.1)
    assert barrier.habit is ServerProfile.BOTH
    again = ReadinessGate(ServerProfile.BOTH)
    again.begin(0.0)
    assert again.closed
    again.asked(0.1)
    again.answered(0.1, roots=1)
    again.tick(again.deadline)
    again.change(10.0)
    again.tick(11.0)
    assert (again.closed, again.stale) == (False, False)


def test_one_that_does_not_ask_at_once_any_more_is_not_waited_for_again() -> None:
    barrier = ReadinessGate(ServerProfile.BOTH)
    barrier.begin(0.0)
    barrier.tick(5.0)
    assert barrier.habit is ServerProfile.IN_CALLS


def test_a_server_that_ignored_one_change_is_not_waited_for_at_the_next() -> None:
    barrier = ReadinessGate()
    barrier.begin(0.0)
    barrier.asked(0.1)
    barrier.answered(0.1, roots=1)
    barrier.tick(barrier.deadline)
    barrier.change(10.0)
    assert barrier.closed
    barrier.tick(11.0)
    barrier.change(20.0)
    assert (barrier.closed, barrier.stale) == (False, True)
    barrier.asked(21.0)
    barrier.change(30.0)
    assert barrier.closed, "it asks after all"
