"""The debouncer for notifications about new proposals."""

from __future__ import annotations

from rootsd.core.throttle import NotificationDebouncer


def test_a_notification_is_due_after_a_quiet_minute() -> None:
    pace = NotificationDebouncer()
    assert pace.due() is None
    pace.add(100.0)
    assert pace.due() == 160.0
    pace.add(150.0)
    assert pace.due() == 210.0
    pace.mark_sent(210.0)
    assert pace.due() is None


def test_notifications_are_an_hour_apart() -> None:
    pace = NotificationDebouncer()
    pace.add(0.0)
    pace.mark_sent(60.0)
    pace.add(100.0)
    assert pace.due() == 3660.0
    pace.add(3650.0)
    assert pace.due() == 3710.0


def test_no_notification_is_due_once_a_person_has_seen_the_proposals() -> None:
    pace = NotificationDebouncer()
    pace.add(0.0)
    pace.clear()
    assert pace.due() is None
    pace.add(10.0)
    assert pace.due() == 70.0
