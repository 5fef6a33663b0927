"""Parse the durations and times that a person types as the value of an option."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from rootsd.core.timestamps import rfc3339

_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_DURATION = r"(?:[0-9]{1,9}[smhdw]){1,5}"
_DURATION_PART = r"([0-9]+)([smhdw])"
_FIRST_YEAR = 1970


class Duration(click.ParamType[int]):
    """A duration such as `8h`, `90m`, `1h30m`, or `2d`, as a number of seconds."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the seconds. Raises a usage error for anything but a duration in range."""
        if isinstance(value, int):
            return value
        seconds = _seconds(value)
        if seconds is None:
            self.fail(f"{value!r} is not a duration such as 8h, 90m, 1h30m, or 2d", param, ctx)
        from rootsd.wire.decisions import MAX_APPROVAL_S

        if not 0 < seconds <= MAX_APPROVAL_S:
            self.fail(f"{value!r} is not between one second and ten years", param, ctx)
        return seconds


class Since(click.ParamType[str]):
    """A time in the past, as RFC 3339 text in UTC: how long ago it was, or a date, or a time.

    A date is its midnight here, and a time without a zone is a time here.
    """

    name = "time"

    def __init__(self, now: datetime | None = None) -> None:
        """`now` replaces the clock."""
        self._now = now

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the time. Raises a usage error for anything else."""
        seconds = _seconds(value)
        try:
            if seconds is None:
                moment = datetime.fromisoformat(value.strip())
            else:
                moment = (self._now or datetime.now(UTC)) - timedelta(seconds=seconds)
            if moment.year < _FIRST_YEAR:
                raise ValueError  # noqa: TRY301 - one message for everything that is no such time
            # The local zone applies if the text names none.
            return rfc3339(moment)
        except (ValueError, OverflowError):
            example = "2d or 2026-11-20"
            self.fail(f"{value!r} is not a duration or a date such as {example}", param, ctx)


def _seconds(typed: str) -> int | None:
    """Return the seconds of a duration, or None if the text is no duration."""
    word = typed.strip().lower()
    if not re.fullmatch(_DURATION, word):
        return None
    return sum(
        int(count) * _SECONDS_PER_UNIT[unit] for count, unit in re.findall(_DURATION_PART, word)
    )
