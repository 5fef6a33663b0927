"""The hours of each day in which the desktop shows no notifications, in local time."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from msgspec import Struct

_DAY = timedelta(days=1)


class QuietHours(Struct, frozen=True):
    """The hours from `start` up to `end`, which may be on the next day. The two differ."""

    start: time
    end: time

    @classmethod
    def parse(cls, text: str) -> QuietHours:
        """Return the hours of a text such as `22:00-08:00`. Raises ValueError."""
        start, end = map(time.fromisoformat, text.split("-"))
        if start == end:
            raise ValueError("the quiet hours start and end at the same time")
        return cls(start, end)

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"

    def left(self, now: datetime) -> float:
        """Return the seconds until the end, or 0 outside of the quiet hours.

        `now` is a local time. A change of the clock may move the end by an hour.
        """
        since_start = (_of_day(now.time()) - _of_day(self.start)) % _DAY
        whole = (_of_day(self.end) - _of_day(self.start)) % _DAY
        return max(0.0, (whole - since_start).total_seconds())


def _of_day(moment: time) -> timedelta:
    return timedelta(
        hours=moment.hour,
        minutes=moment.minute,
        seconds=moment.second,
        microseconds=moment.microsecond,
    )
