"""When another server is started."""

from __future__ import annotations

import math

from rootsd.relay.arguments import Command
from rootsd.relay.renewal import Renewal
from rootsd.relay.roots import Folder

A, B, C = (Folder(b"/" + name.encode(), name) for name in "abc")


def running(typed: str, *folders: Folder) -> Renewal:
    renewal = Renewal(Command(typed.split(), (), "/none"))
    renewal.start(folders)
    return renewal


def test_what_is_added_waits_for_a_moment_without_more_but_not_for_ever() -> None:
    renewal = running("s {roots}", A)
    renewal.change([A, B], 10.0, narrows=False)
    assert renewal.deadline == 10.3
    now = 10.0
    while now < 11.9:
        now += 0.2
        renewal.change([A, B, Folder(b"/%d" % round(now * 10), "x")], now, narrows=False)
        assert now < renewal.deadline <= 12.0 + 1e-9
    assert renewal.deadline == 12.0


def test_what_is_taken_away_is_due_at_once_and_stays_due() -> None:
    renewal = running("s {roots}", A, B)
    renewal.change([A], 10.0, narrows=True)
    assert renewal.deadline == 10.0
    renewal.change([A, C], 10.1, narrows=False)
    assert renewal.deadline == 10.0


def test_a_change_that_the_command_does_not_show_is_none() -> None:
    renewal = running("s {root:a}", A)
    renewal.change([A, B], 10.0, narrows=False)
    assert renewal.deadline == math.inf
    renewal = running("s", A)
    renewal.change([], 10.0, narrows=True)
    assert renewal.deadline == math.inf
    assert not renewal.is_by_command


def test_a_change_that_is_taken_back_in_time_is_none() -> None:
    renewal = running("s {roots}", A)
    renewal.change([A, B], 10.0, narrows=False)
    renewal.change([A], 10.1, narrows=True)
    assert renewal.deadline == math.inf


def test_nothing_is_due_before_the_first_start_and_after_each() -> None:
    renewal = Renewal(Command(["s", "{roots}"], (), "/none"))
    renewal.change([A], 1.0, narrows=False)
    assert renewal.deadline == math.inf
    assert renewal.start([A]).words == ("s", "/a")
    renewal.change([], 2.0, narrows=True)
    renewal.hold()
    assert renewal.deadline == math.inf
    assert renewal.start([]).words == ("s", "/none")
    assert renewal.deadline == math.inf
