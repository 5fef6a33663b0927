"""A folder without its marker is due after a delay, and later while a process works there."""

from __future__ import annotations

from rootsd.discovery.departures import Departures
from support.fake_watchers import Clock


def test_a_folder_is_due_after_a_delay_unless_it_is_gone() -> None:
    clock = Clock()
    departures = Departures(lambda _folders: frozenset(), clock)
    departures.add(b"/one")
    departures.add(b"/two")
    departures.drop(b"/two")
    assert departures.take_due() == []
    due = departures.next_due()
    assert due is not None
    clock.now = due
    assert departures.take_due() == [b"/one"]
    assert departures.next_due() is None


def test_a_process_in_the_folder_delays_it_for_a_while() -> None:
    clock = Clock()
    start = clock.now
    departures = Departures(frozenset, clock)
    departures.add(b"/one")
    taken: list[bytes] = []
    while (due := departures.next_due()) is not None:
        clock.now = due
        taken += departures.take_due()
    assert taken == [b"/one"]
    assert 5 < clock.now - start < 15
