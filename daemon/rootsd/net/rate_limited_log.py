"""A rate-limited log for events that any client can trigger."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from rootsd.core.throttle import TokenBucket

_BURST, _REFILL_S = 20, 60.0
_FORMAT = "%(asctime)s %(levelname)s %(message)s"


class LogThrottle:
    """A throttle that passes a burst, then one record a minute, and counts the dropped ones."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` counts seconds and never goes back."""
        self._clock = clock
        self._allowance = TokenBucket(_BURST, 1 / _REFILL_S)
        self._held = 0

    def take(self) -> int:
        """Return 0 to drop this record, or else 1 plus the number dropped since the last one."""
        self._held += 1
        if self._allowance.wait(self._clock()):
            return 0
        held, self._held = self._held, 0
        return held


class RateLimitedFilter(logging.Filter):
    """A filter for a log handler, with one LogThrottle for each place in the code that logs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._buckets: dict[tuple[str, int], LogThrottle] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record. Add the number of dropped ones to its text."""
        if record.levelno >= logging.CRITICAL:
            return True
        place = (record.pathname, record.lineno)
        if (bucket := self._buckets.get(place)) is None:
            bucket = self._buckets[place] = LogThrottle(self._clock)
        count = bucket.take()
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count - 1} more like it)", None
        return count > 0


def configure_logging() -> None:
    """Write the log of this process to stderr, at a limited rate."""
    to_stderr = logging.StreamHandler()
    to_stderr.addFilter(RateLimitedFilter(time.monotonic))
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[to_stderr])
