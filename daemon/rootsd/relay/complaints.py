"""Messages on standard error about lines that were dropped, at a limited rate. Pure.

A peer can cause one with each line, and standard error often goes to a log file of the client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_AT_ONCE = 3
_BETWEEN_S = 60.0


class Complaints:
    """Passes the first few messages on at once, and then one per minute with a count."""

    def __init__(self) -> None:
        self._passed = 0
        self._held = 0
        self._next_at = 0.0

    def pass_on(self, messages: Iterable[str], now: float) -> Iterator[str]:
        """Return those of `messages` to print now, as whole lines. `now` never goes back."""
        for message in messages:
            if self._passed >= _AT_ONCE and now < self._next_at:
                self._held += 1
                continue
            more = f" (and {self._held} more)" if self._held else ""
            self._passed, self._held = self._passed + 1, 0
            self._next_at = now + _BETWEEN_S
            yield f"rootsd run: {message}{more}\n"
