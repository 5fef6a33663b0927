"""How often something may be done: a number at once, and then so many a second."""

from __future__ import annotations

from dataclasses import dataclass


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
