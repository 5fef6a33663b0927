"""The throttle for notifications."""

from __future__ import annotations

from rootsd.mcp.subscriptions import NotificationThrottle


def test_the_first_notification_does_not_wait() -> None:
    assert NotificationThrottle(0.05).wait(1000.0, revokes=False) == 0


def test_an_addition_waits_for_the_rest_of_the_interval() -> None:
    pace = NotificationThrottle(0.5)
    pace.sent(1000.0)
    assert pace.wait(1000.125, revokes=False) == 0.375
    assert pace.wait(1000.5, revokes=False) == 0
    assert pace.wait(2000.0, revokes=False) == 0


def test_a_revocation_never_waits() -> None:
    pace = NotificationThrottle(0.5)
    pace.sent(1000.0)
    assert pace.wait(1000.0, revokes=True) == 0
