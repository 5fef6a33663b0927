"""How often something may be done: a number at once, and then so many a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Allowance:
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
class Allowances:
    """One bucket for each of those who ask, made by `make`. Of `most` the one that was used
    longest ago is forgotten, and whose it was begins anew."""

    make: Callable[[], Allowance]
    most: int = 1024
    _kept: dict[int, Allowance] = field(default_factory=dict)

    def of(self, asker: int) -> Allowance:
        """The bucket of one of them."""
        bucket = self._kept.pop(asker, None) or self.make()
        self._kept[asker] = bucket
        if len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]
        return bucket
