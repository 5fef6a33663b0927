"""End approvals when their time or their session is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from rootsd.core.catalog import Catalog
from rootsd.core.expiry import ClockReading, due_ns, has_ended
from rootsd.core.inputs import ApprovalExpired, SessionEnded
from rootsd.core.model import Decision, Expiry, Project, SessionKey


class Alarm(Protocol):
    """Wakes whoever waits at a moment of the clock that counts from the machine's start."""

    def set(self, since_boot_ns: int | None) -> None:
        """Ring then, or at once where that is over; never where it is None."""

    async def wait(self) -> None:
        """Wait until it rings."""


def assume_over(_: SessionKey) -> bool:
    """In doubt a session is over."""
    return True


class ExpiryTracker:
    """Knows what has ended. Each answer asks; the alarm is for those who wait for a change.

    `is_over` tells whether a session has ended.
    """

    def __init__(
        self,
        now: Callable[[], ClockReading],
        alarm: Alarm,
        is_over: Callable[[SessionKey], bool] = assume_over,
    ) -> None:
        self._now = now
        self._alarm = alarm
        self._is_over = is_over
        # What another start of the machine left is reckoned once: the wall clock may jump later.
        self._due: dict[Decision, int] = {}

    def after(self, seconds: int) -> Expiry:
        """The end of an approval that is given now."""
        return self._now().after(seconds)

    def ended(self, catalog: Catalog) -> list[ApprovalExpired | SessionEnded]:
        """Return the approvals whose time, or whose session, is over."""
        left = [
            SessionEnded(path, session)
            for path, session in catalog.session_bound.items()
            if self._is_over(session)
        ]
        if not catalog.expiring:
            return [*left]
        now = self._now()
        return [
            *left,
            *self._expired(catalog, now),
        ]

    def _expired(self, catalog: Catalog, now: ClockReading) -> list[ApprovalExpired]:
        return [
            ApprovalExpired(path, decision.expires)
            for path, decision in catalog.expiring.items()
            if decision.expires is not None and self._due_ns(decision, now) <= now.since_boot_ns
        ]

    def end_of_lapsed(self, project: Project) -> Expiry | None:
        """When the approval that `project` lost would end; None where it had no end, or has ended:
        what is approved then is approved anew."""
        lapse = project.ruling.lapse
        return None if lapse is None or has_ended(lapse, self._now()) else lapse.expires

    def has_ended(self, project: Project) -> bool:
        """Whether the approval that `project` lost would have ended by now."""
        lapse = project.ruling.lapse
        return lapse is not None and (lapse.for_session or has_ended(lapse, self._now()))

    def follow(self, catalog: Catalog) -> None:
        """Ring for the next end in this catalog."""
        ending = catalog.expiring.values()
        if not ending:
            self._due.clear()
            self._alarm.set(None)
            return
        now = self._now()
        self._due = {decision: self._due_ns(decision, now) for decision in ending}
        self._alarm.set(min(self._due.values()))

    async def keep(self, look: Callable[[], Awaitable[object]]) -> None:
        """Have `look` ask what has ended whenever something has. Runs as long as the daemon."""
        while True:
            await self._alarm.wait()
            await look()

    def _due_ns(self, decision: Decision, now: ClockReading) -> int:
        known = self._due.get(decision)
        if known is None:
            known = due_ns(decision, now)
        assert known is not None, "only approvals with an end are asked about"
        return known
