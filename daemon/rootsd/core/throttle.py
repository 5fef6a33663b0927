"""Limit how often something happens: token buckets, and a debouncer for desktop notifications."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field


class TokenBucket(Struct):
    """A bucket with `burst` tokens that refills by `per_second`.

    Times are seconds of one monotonic clock.
    """

    burst: int
    per_second: float
    _left: float | None = None
    _since: float = 0.0

    def wait(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until the next token is available."""
        left = self.burst if self._left is None else self._left
        left = min(self.burst, left + (now - self._since) * self.per_second)
        self._since = now
        self._left = left - 1 if left >= 1 else left
        return 0.0 if left >= 1 else (1 - left) / self.per_second


class TokenBuckets(Struct):
    """One bucket for each key, created by `make`.

    There are at most `most` buckets. With more, the least recently used bucket is dropped, and its
    key starts again with a full one.
    """

    make: Callable[[], TokenBucket]
    most: int = 1024
    _kept: dict[int, TokenBucket] = field(default_factory=dict)

    def of(self, key: int) -> TokenBucket:
        """Return the bucket for `key`."""
        bucket = self._kept.pop(key, None) or self.make()
        self._kept[key] = bucket
        if len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]
        return bucket


NOTIFICATION_QUIET_S = 60.0
NOTIFICATION_INTERVAL_S = 3600.0


class NotificationDebouncer:
    """Decides when to notify a person of new proposals. Times are seconds of one monotonic clock.

    A notification is due when nothing was added for `quiet` seconds, but not sooner than `apart`
    seconds after the last one. It is not due if the person has seen the proposals.
    """

    def __init__(
        self, quiet: float = NOTIFICATION_QUIET_S, apart: float = NOTIFICATION_INTERVAL_S
    ) -> None:
        self._quiet = quiet
        self._apart = apart
        self._last_added: float | None = None
        self._last_sent: float | None = None

    def add(self, now: float) -> None:
        """Record a new proposal."""
        self._last_added = now

    def clear(self) -> None:
        """Record that the person has seen all proposals."""
        self._last_added = None

    def mark_sent(self, now: float) -> None:
        """Record that a notification covered all proposals."""
        self._last_added, self._last_sent = None, now

    def due(self) -> float | None:
        """Return when to notify if nothing more is added, or None without new proposals."""
        if self._last_added is None:
            return None
        settled = self._last_added + self._quiet
        return settled if self._last_sent is None else max(settled, self._last_sent + self._apart)
