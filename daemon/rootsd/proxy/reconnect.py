"""Decide when to look for a daemon that is gone, when to start one, and when to report it.

Times are seconds of any clock that never goes back.
"""

from __future__ import annotations

GRACE_S = 5.0
"""How long requests wait for a daemon that was there and is gone."""

_FIRST_PAUSE_S = 0.02
_PAUSE_S = 0.25
_LONG_PAUSE_S = 2.0  # once the client was told: a look at a socket, for the news it will want
_WORST_PAUSE_S = 5.0  # between daemons that end as soon as they are spoken to
_BETWEEN_STARTS_S = 1.0
_NEVER = float("inf")


class ReconnectPolicy:
    """Where a bridge or a relay stands with a daemon that it has not."""

    def __init__(self) -> None:
        self.retry_at = _NEVER
        self.give_up_at = -_NEVER  # whoever has never had a daemon need not wait for it
        """Until when a daemon that is gone is waited for; see `is_hopeless`."""
        self._pause = _FIRST_PAUSE_S
        self._losses = 0
        self._was_there = False
        self._may_start = True
        self._started_at = -_NEVER

    def connected(self) -> None:
        """A daemon is there."""
        self._was_there = True

    def lost(self, now: float, *, useful: bool) -> None:
        """It is gone; `useful`: it had answered something."""
        self._losses = 0 if useful else self._losses + 1
        # One loss is nothing: a daemon that was idle, and is restarted.
        wait = _FIRST_PAUSE_S * 2**self._losses if self._losses > 1 else 0.0
        self.retry_at = now + min(wait, _WORST_PAUSE_S)
        self.give_up_at = self.retry_at + GRACE_S
        self._pause = _FIRST_PAUSE_S
        self._may_start = True

    def asked(self, now: float) -> None:
        """The client wants something of it now."""
        if self.is_hopeless(now):
            self.retry_at = now
            self._may_start = now - self._started_at >= _BETWEEN_STARTS_S

    def start(self, now: float) -> bool:
        """Nobody listens: whether to start a daemon, which the caller then does."""
        if self._may_start:
            self._started_at = now
        return self._may_start

    def not_started(self) -> None:
        """It cannot or may not be started: no use in trying again before the client asks."""
        self._may_start = False

    def missed(self, now: float) -> None:
        """An attempt came to nothing."""
        self._pause = min(2 * self._pause, self._longest_pause(now))
        self.retry_at = now + self._pause if self._was_there else _NEVER

    def is_hopeless(self, now: float) -> bool:
        """Whether to tell the client instead of letting it wait."""
        return now >= self.give_up_at

    def _longest_pause(self, now: float) -> float:
        return _LONG_PAUSE_S if self.is_hopeless(now) else _PAUSE_S
