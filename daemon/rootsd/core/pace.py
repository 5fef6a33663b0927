"""When a person is told of new proposals: once they have stopped coming, and not too often."""

from __future__ import annotations

QUIET_S = 60.0
APART_S = 3600.0


class Pace:
    """Times are in seconds on a clock that never goes back.

    A batch is told of when nothing was added to it for `quiet` seconds, and not sooner than
    `apart` seconds after the last one; not at all where the person looks first.
    """

    def __init__(self, quiet: float = QUIET_S, apart: float = APART_S) -> None:
        self._quiet = quiet
        self._apart = apart
        self._last_found: float | None = None
        self._last_told: float | None = None

    def found(self, now: float) -> None:
        """Something was proposed."""
        self._last_found = now

    def looked(self) -> None:
        """The person has seen what there is."""
        self._last_found = None

    def told(self, now: float) -> None:
        """The person was told of all there is."""
        self._last_found, self._last_told = None, now

    def due(self) -> float | None:
        """When to tell; None for as long as nothing more is found."""
        if self._last_found is None:
            return None
        settled = self._last_found + self._quiet
        return settled if self._last_told is None else max(settled, self._last_told + self._apart)
