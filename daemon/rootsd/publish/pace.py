"""When the next notice may go out: the first at once, then at most one per interval."""

from __future__ import annotations

import math

NOTICE_INTERVAL_S = 0.05


class Pace:
    """Spaces notices of additions. A revoke never waits: a client that acts on a root it may no
    longer use does more harm than one notice too many. Times are seconds of a monotonic clock."""

    def __init__(self, interval: float = NOTICE_INTERVAL_S) -> None:
        self._interval = interval
        self._last = -math.inf

    def wait(self, now: float, *, revokes: bool) -> float:
        """How many seconds to hold a notice back; 0 where it goes at once."""
        return 0.0 if revokes else max(0.0, self._last + self._interval - now)

    def sent(self, now: float) -> None:
        """Note that a notice went out."""
        self._last = now
