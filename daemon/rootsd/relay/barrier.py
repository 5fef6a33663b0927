"""Holds a client's calls until the server has taken in the roots that it was promised. Pure.

Servers load their roots behind the back of whoever calls them: a call right after the handshake
is refused for a folder that is approved, and one right after a revoke is let through for one that
is not. Nothing tells when they are done, but that they rest. Times are seconds of a clock that
never goes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum, StrEnum, auto

_FIRST_CAP_S = 1.0  # a server not seen before: some ask a third of a second after the handshake
_CAP_S = 5.0  # one that is known to ask, on a busy machine
_CHANGE_CAP_S = 1.0
_SETTLE_S = 0.05  # measured: 20 ms are enough for server-filesystem, none are not
_SETTLE_PER_ROOT_S = 0.0002
_SETTLE_SLOW_S = 0.3  # more at most for a server that was slow to ask: then all takes it longer
_WORK_CAP_S = 0.5  # more at most for one that is at work: some are for minutes
_LOOK_AGAIN_S = 0.01


class Habit(StrEnum):
    """What is known of a server: whether it asks for roots as soon as it may."""

    UNKNOWN = "unknown"
    ASKS = "asks"
    SILENT = "silent"


class _Phase(Enum):
    OPEN = auto()
    PROMISED = auto()
    ASKED = auto()
    SETTLING = auto()


class Barrier:
    """Closed for calls between a promise and the moment when the server has acted on it."""

    def __init__(self, habit: Habit = Habit.UNKNOWN) -> None:
        self.habit = habit
        self.deadline = math.inf
        """When to call `tick`; never where only the server or the daemon is waited for."""
        self.reads = False
        """Whether the server has ever asked for roots."""
        self.stale = False
        """Whether it was told of a change and did not ask again."""
        self.in_doubt = False
        """Whether the roots are others, and it is not known yet which."""
        self.is_at_work: Callable[[], bool] = _is_not
        """Whether the server is; false where that cannot be told."""
        self._phase = _Phase.OPEN
        self._first_until = -1.0
        self._promised_at = -math.inf
        self._slowness = 0.0
        self._open_by = math.inf

    @property
    def closed(self) -> bool:
        """Whether calls have to wait."""
        return self.in_doubt or self._phase is not _Phase.OPEN

    def begin(self, now: float) -> None:
        """The handshake is over: the server may ask now."""
        self.stale = False
        self._first_until = now + _FIRST_CAP_S
        if self.habit is Habit.ASKS:
            self._promise(now, _CAP_S)
        elif self.habit is Habit.UNKNOWN:
            self._promise(now, _FIRST_CAP_S)

    def change(self, now: float) -> None:
        """The server is told that its roots are others."""
        if self.reads:
            self._promise(now, _CHANGE_CAP_S)

    def asked(self, now: float) -> None:
        """The server asks; how long the answer takes is not its fault."""
        if now <= self._first_until:
            self.habit = Habit.ASKS
        self.reads = True
        self.stale = False
        if self._phase is not _Phase.OPEN:
            self._slowness = min(2 * (now - self._promised_at), _SETTLE_SLOW_S)
            self._phase = _Phase.ASKED
            self.deadline = math.inf

    def answered(self, now: float, roots: int) -> None:
        """It was told so many roots, which it now looks at on the disk."""
        if self._phase is _Phase.ASKED:
            self._phase = _Phase.SETTLING
            settling = _SETTLE_S + self._slowness + roots * _SETTLE_PER_ROOT_S
            self.deadline = now + settling
            self._open_by = self.deadline + _WORK_CAP_S

    def tick(self, now: float) -> None:
        """Open where the time has come."""
        if now < self.deadline:
            return
        if self._phase is _Phase.SETTLING and now < self._open_by and self.is_at_work():
            self.deadline = now + _LOOK_AGAIN_S
            return
        if self._phase is _Phase.PROMISED:
            if self.reads:
                self.stale = True
            else:
                self.habit = Habit.SILENT
        self.open()

    def open(self) -> None:
        """Hold nothing any more for the server's sake: there is nothing to wait for."""
        self._phase = _Phase.OPEN
        self.deadline = math.inf

    def _promise(self, now: float, cap: float) -> None:
        self._phase = _Phase.PROMISED
        self._promised_at = now
        self.deadline = now + cap


def _is_not() -> bool:
    return False
