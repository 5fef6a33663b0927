"""End approvals when their time or their session is over.

An approval may end at a point in time (`approve --for 8h`) or with a session. Correctness does not
depend on a timer, because `ExpiryTracker.ended` is called before each answer. The alarm exists
only to notify sessions of an end when there is no answer to make.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from rootsd.core.catalog import Catalog
from rootsd.core.expiry import ClockReading, due_ns, has_ended
from rootsd.core.inputs import ApprovalExpired, SessionEnded
from rootsd.core.model import Decision, Expiry, Project, SessionKey


class Alarm(Protocol):
    """A timer on the clock that counts from the machine's start."""

    def set(self, since_boot_ns: int | None) -> None:
        """Ring at this time, or at once if it is over. With None, never ring."""

    async def wait(self) -> None:
        """Wait until the alarm rings."""


def assume_over(_: SessionKey) -> bool:
    """Return True: a session that cannot be looked up counts as over."""
    return True


class ExpiryTracker:
    """Finds the approvals that have ended.

    `is_over` returns whether a session has ended.
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
        # If the machine was started since the approval, its end is known only by the wall clock.
        # Convert it to the clock since boot once, because the wall clock may jump later.
        self._due: dict[Decision, int] = {}

    def after(self, seconds: int) -> Expiry:
        """Return the end of an approval that is given now for `seconds`."""
        return self._now().after(seconds)

    def ended(self, catalog: Catalog) -> list[ApprovalExpired | SessionEnded]:
        """Return the approvals whose time or session is over."""
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

    def due_ns(self, decision: Decision) -> int | None:
        """Return the end of an approval in ns since the machine started; None without an end."""
        return None if decision.expires is None else self._due_ns(decision, self._now())

    def end_of_lapsed(self, project: Project) -> Expiry | None:
        """Return the end of the approval that `project` lost, which a new approval takes over.

        Return None if that approval had no end or would have ended by now. A new approval then has
        no end.
        """
        lapse = project.ruling.lapse
        return None if lapse is None or has_ended(lapse, self._now()) else lapse.expires

    def has_ended(self, project: Project) -> bool:
        """Return whether the approval that `project` lost would have ended by now."""
        lapse = project.ruling.lapse
        return lapse is not None and (lapse.for_session or has_ended(lapse, self._now()))

    def follow(self, catalog: Catalog) -> None:
        """Set the alarm for the next end in this catalog."""
        ending = catalog.expiring.values()
        if not ending:
            self._due.clear()
            self._alarm.set(None)
            return
        now = self._now()
        self._due = {decision: self._due_ns(decision, now) for decision in ending}
        self._alarm.set(min(self._due.values()))

    async def keep(self, on_alarm: Callable[[], Awaitable[object]]) -> None:
        """Call `on_alarm` each time the alarm rings, for as long as the daemon runs."""
        while True:
            await self._alarm.wait()
            await on_alarm()

    def _due_ns(self, decision: Decision, now: ClockReading) -> int:
        known = self._due.get(decision)
        if known is None:
            known = due_ns(decision, now)
        assert known is not None, "callers pass only approvals with an end"
        return known
