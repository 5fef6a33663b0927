"""When an approval that has an end is over, whatever is done to the wall clock.

Within one start of the machine only the clock that counts from it is asked: it goes on while the
machine sleeps and cannot be set. After another start the wall clock is all there is. One that
stands before the approval is wrong, and so it counts as past its end: in doubt, less is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rootsd.core.model import Decision, Expiry, Lapse

_NS = 10**9


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Now, by both clocks. `boot` names this start of the machine; empty where none is known."""

    wall: datetime
    boot: str
    since_boot_ns: int

    def after(self, seconds: int) -> Expiry:
        """The end of what lasts so many seconds from now on."""
        end = self.wall + timedelta(seconds=seconds)
        return Expiry(end, self.boot, self.since_boot_ns + seconds * _NS)


def due_ns(decision: Decision, now: ClockReading) -> int | None:
    """When the approval ends, in nanoseconds after this start of the machine; None for never."""
    expires = decision.expires
    return None if expires is None else _due_ns(expires, decision.at, now)


def has_ended(lapse: Lapse, now: ClockReading) -> bool:
    """Whether the approval that lapsed would have ended by now."""
    expires = lapse.expires
    return expires is not None and _due_ns(expires, lapse.at, now) <= now.since_boot_ns


def _due_ns(expires: Expiry, earlier: datetime, now: ClockReading) -> int:
    """`earlier` is a moment that is past."""
    if expires.boot and expires.boot == now.boot:
        return expires.since_boot_ns
    left = expires.at - now.wall
    is_wrong = now.wall < earlier
    return now.since_boot_ns + (0 if is_wrong else int(left / timedelta(microseconds=1)) * 1000)
