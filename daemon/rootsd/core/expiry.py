"""Compute when an approval ends, even if someone changes the wall clock.

Until the machine restarts, only the clock since its start counts. That clock continues while the
machine sleeps, and nobody can set it. After a restart, rootsd has to use the wall clock. If the
wall clock shows a time before the approval, it is wrong, and the approval counts as expired: in
case of doubt, rootsd publishes less.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from rootsd.core.model import Decision, Expiry, Lapse

_NS = 10**9


class ClockReading(Struct, frozen=True):
    """The current time on both clocks.

    `boot` identifies the last start of the machine. It is empty if that is unknown.
    """

    wall: datetime
    boot: str
    since_boot_ns: int

    def after(self, seconds: int) -> Expiry:
        """Return the end of a period of `seconds` from now."""
        end = self.wall + timedelta(seconds=seconds)
        return Expiry(end, self.boot, self.since_boot_ns + seconds * _NS)


def due_ns(decision: Decision, now: ClockReading) -> int | None:
    """Return the end of the approval in ns since the machine started, or None without an end."""
    expires = decision.expires
    return None if expires is None else _due_ns(expires, decision.at, now)


def has_ended(lapse: Lapse, now: ClockReading) -> bool:
    """Return whether the approval that lapsed would have expired by now."""
    expires = lapse.expires
    return expires is not None and _due_ns(expires, lapse.at, now) <= now.since_boot_ns


def _due_ns(expires: Expiry, earlier: datetime, now: ClockReading) -> int:
    """Return the end in ns since the machine started. `earlier` is a time in the past."""
    if expires.boot and expires.boot == now.boot:
        return expires.since_boot_ns
    left = expires.at - now.wall
    is_wrong = now.wall < earlier
    return now.since_boot_ns + (0 if is_wrong else int(left / timedelta(microseconds=1)) * 1000)
