"""Durations and times that a person types."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from rootsd.cli.options.times import Duration, Since


def _seconds(typed: str) -> int:
    return Duration().convert(typed, None, None)


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("8h", 28_800), ("90m", 5_400), ("1h30m", 5_400), ("2d", 172_800), ("1w", 604_800),
     ("1s", 1), (" 8H ", 28_800), ("3650d", 315_360_000)],
)  # fmt: skip
def test_a_duration_is_parsed(typed: str, seconds: int) -> None:
    assert _seconds(typed) == seconds


@pytest.mark.parametrize(
    "typed",
    ["", "8", "h", "8 hours", "-8h", "0h", "1.5h", "8h!", "3651d", "999999999w", "8h\n8", "٨h"],
)
def test_an_invalid_duration_is_a_usage_error(typed: str) -> None:
    with pytest.raises(click.BadParameter):
        _seconds(typed)


NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "moment"),
    [("2d", "2026-11-19T12:00:00Z"), ("1h30m", "2026-11-21T10:30:00Z"),
     ("2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z"),
     ("2026-11-20T08:00:00+02:00", "2026-11-20T06:00:00Z")],
)  # fmt: skip
def test_since_is_a_duration_before_now_or_a_time(typed: str, moment: str) -> None:
    assert Since(NOON).convert(typed, None, None) == moment


def test_a_date_is_its_midnight_here() -> None:
    midnight = datetime.fromisoformat(Since(NOON).convert("2026-11-20", None, None))
    assert midnight.astimezone().timetuple()[:6] == (2026, 11, 20, 0, 0, 0)
    now = datetime.fromisoformat(Since().convert("1d", None, None))
    assert timedelta(hours=23) < datetime.now(UTC) - now < timedelta(hours=25)


@pytest.mark.parametrize("typed", ["", "yesterday", "2", "2026-13-01", "99999w", "0001-01-01"])
def test_an_invalid_time_is_a_usage_error(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="not a duration or a date"):
        Since(NOON).convert(typed, None, None)
