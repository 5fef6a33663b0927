"""Token buckets, and a debouncer for desktop notifications.

How often something may be done: a number at once, and then so many a second.

When a person is told of new proposals: once they have stopped coming, and not too often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """A bucket of `burst` that fills again by `per_second`. Times are seconds of one clock that
    never goes back."""

    burst: int
    per_second: float
    _left: float | None = None
    _since: float = 0.0

    def wait(self, now: float) -> float:
        """How many seconds to wait for the next; where it is 0, that one is used up."""
        left = self.burst if self._left is None else self._left
        left = min(self.burst, left + (now - self._since) * self.per_second)
        self._since = now
        self._left = left - 1 if left >= 1 else left
        return 0.0 if left >= 1 else (1 - left) / self.per_second


@dataclass(slots=True)
class TokenBuckets:
    """One bucket for each of those who ask, made by `make`. Of `most` the one that was used
    longest ago is forgotten, and whose it was begins anew."""

    make: Callable[[], TokenBucket]
    most: int = 1024
    _kept: dict[int, TokenBucket] = field(default_factory=dict)

    def of(self, asker: int) -> TokenBucket:
        """The bucket of one of them."""
        bucket = self._kept.pop(asker, None) or self.make()
        self._kept[asker] = bucket
        if len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]
        return bucket


NOTIFICATION_QUIET_S = 60.0
NOTIFICATION_INTERVAL_S = 3600.0


class NotificationDebouncer:
    """Times are in seconds on a clock that never goes back.

    A batch is told of when nothing was added to it for `quiet` seconds, and not sooner than
    `apart` seconds after the last one; not at all where the person looks first.
    """

    def __init__(
        self, quiet: float = NOTIFICATION_QUIET_S, apart: float = NOTIFICATION_INTERVAL_S
    ) -> None:
        self._quiet = quiet
        self._apart = apart
        self._last_added: float | None = None
        self._last_sent: float | None = None

    def add(self, now: float) -> None:
        """Something was proposed."""
        self._last_added = now

    def clear(self) -> None:
        """The person has seen what there is."""
        self._last_added = None

    def mark_sent(self, now: float) -> None:
        """The person was told of all there is."""
        self._last_added, self._last_sent = None, now

    def due(self) -> float | None:
        """When to tell; None for as long as nothing more is found."""
        if self._last_added is None:
            return None
        settled = self._last_added + self._quiet
        return settled if self._last_sent is None else max(settled, self._last_sent + self._apart)
