"""When a person is told of new proposals."""

from __future__ import annotations

from rootsd.core.throttle import NotificationDebouncer


def test_a_batch_is_told_of_once_nothing_was_added_for_a_minute() -> None:
    pace = NotificationDebouncer()
    assert pace.due() is None
    pace.add(100.0)
    assert pace.due() == 160.0
    pace.add(150.0)
    assert pace.due() == 210.0
    pace.mark_sent(210.0)
    assert pace.due() is None


def test_at_most_one_an_hour() -> None:
    pace = NotificationDebouncer()
    pace.add(0.0)
    pace.mark_sent(60.0)
    pace.add(100.0)
    assert pace.due() == 3660.0
    pace.add(3650.0)
    assert pace.due() == 3710.0


def test_who_looks_is_not_told() -> None:
    pace = NotificationDebouncer()
    pace.add(0.0)
    pace.clear()
    assert pace.due() is None
    pace.add(10.0)
    assert pace.due() == 70.0
