"""Decide when to look for a lost daemon, when to start one, and when to give up waiting. Pure.

Times are seconds of a clock that never goes back. After a loss, the proxy tries to connect at once
and then at growing intervals. For `GRACE_S` seconds, requests wait for a new daemon. After that
the proxy answers them with an error, but looks for a daemon now and then.
"""

from __future__ import annotations

GRACE_S = 5.0
"""How many seconds requests wait for a daemon after a loss."""

_FIRST_PAUSE_S = 0.02
_PAUSE_S = 0.25
_LONG_PAUSE_S = 2.0  # after giving up, so that the client hears of changes again
_WORST_PAUSE_S = 5.0  # between daemons that crash at once
_BETWEEN_STARTS_S = 1.0
_NEVER = float("inf")


class ReconnectPolicy:
    """The schedule of one proxy for connecting to a daemon."""

    def __init__(self) -> None:
        self.retry_at = _NEVER
        self.give_up_at = -_NEVER  # without a first daemon, there is nothing to wait for
        """Until when requests wait for a daemon; see `is_hopeless`."""
        self._pause = _FIRST_PAUSE_S
        self._losses = 0
        self._was_there = False
        self._may_start = True
        self._started_at = -_NEVER

    def begin(self, now: float) -> None:
        """Look for a daemon from now on, as after a loss: requests wait for it."""
        self.connected()
        self.lost(now, useful=True)

    def connected(self) -> None:
        """Note that a daemon is connected."""
        self._was_there = True

    def lost(self, now: float, *, useful: bool) -> None:
        """Note the loss of the daemon. `useful` says whether it had answered anything."""
        self._losses = 0 if useful else self._losses + 1
        # A single loss is normal: an idle daemon exits, and is started again.
        wait = _FIRST_PAUSE_S * 2**self._losses if self._losses > 1 else 0.0
        self.retry_at = now + min(wait, _WORST_PAUSE_S)
        self.give_up_at = self.retry_at + GRACE_S
        self._pause = _FIRST_PAUSE_S
        self._may_start = True

    def asked(self, now: float) -> None:
        """Note that the client needs the daemon now."""
        if self.is_hopeless(now):
            self.retry_at = now
            self._may_start = now - self._started_at >= _BETWEEN_STARTS_S

    def start(self, now: float) -> bool:
        """Return whether to start a daemon, because none listens. The caller must then start
        it.
        """
        if self._may_start:
            self._started_at = now
        return self._may_start

    def not_started(self) -> None:
        """Note that no daemon can be started. Do not try again until the client needs one."""
        self._may_start = False

    def missed(self, now: float) -> None:
        """Note an attempt that failed, and schedule the next one."""
        self._pause = min(2 * self._pause, self._longest_pause(now))
        self.retry_at = now + self._pause if self._was_there else _NEVER

    def is_hopeless(self, now: float) -> bool:
        """Whether to answer the client with an error instead of letting it wait."""
        return now >= self.give_up_at

    def _longest_pause(self, now: float) -> float:
        return _LONG_PAUSE_S if self.is_hopeless(now) else _PAUSE_S
