"""The hours without notifications."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rootsd.core.quiet_hours import QuietHours

HOUR = 3600.0


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-20T{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "now", "left"),
    [
        ("22:00-08:00", "21:59:59", 0.0),
        ("22:00-08:00", "22:00:00", 10 * HOUR),
        ("22:00-08:00", "23:30:00", 8.5 * HOUR),
        ("22:00-08:00", "00:00:00", 8 * HOUR),
        ("22:00-08:00", "07:59:59", 1.0),
        ("22:00-08:00", "08:00:00", 0.0),
        ("12:00-13:30", "11:59:59", 0.0),
        ("12:00-13:30", "13:00:00", 0.5 * HOUR),
        ("12:00-13:30", "13:30:00", 0.0),
        ("00:00-23:59", "23:59:00", 0.0),
        ("00:00-23:59", "23:58:00", 60.0),
    ],
)
def test_quiet_hours_may_go_past_midnight(hours: str, now: str, left: float) -> None:
    assert QuietHours.parse(hours).left(at(now)) == left


@pytest.mark.parametrize("text", ["08:00-08:00", "", "22:00", "25:00-01:00", "1-2-3"])
def test_other_texts_are_no_hours(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        QuietHours.parse(text)
