"""Hold a client's calls until the server has loaded its current roots. Pure.

Many servers read their roots in the background. A call right after the handshake would be refused
for a folder that is approved, and a call right after a revoke would be let through for a folder
that is not. No message tells when they are done; only their rest does. Other servers ask for roots
within a call: their calls are never held. Times are seconds of a clock that never goes back.
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


class ServerProfile(StrEnum):
    """When a server asks for roots. The values are stored: see
    `rootsd.proxy.run.runtime_files`."""

    UNKNOWN = "unknown"
    ASKS = "asks"
    """As soon as it may."""
    SILENT = "silent"
    """Not before a call, and perhaps never."""
    IN_CALLS = "in calls"
    """While it handles a call."""
    BOTH = "both"
    """As soon as it may, and while it handles a call."""

    @property
    def asks_in_calls(self) -> bool:
        """Whether the server looks again when it needs its roots."""
        return self in (ServerProfile.IN_CALLS, ServerProfile.BOTH)

    @property
    def asks_at_once(self) -> bool:
        """Whether the server is waited for after the handshake."""
        return self in (ServerProfile.ASKS, ServerProfile.BOTH)


OnProfileChange = Callable[[ServerProfile], None]


class _Phase(Enum):
    OPEN = auto()
    PROMISED = auto()
    ASKED = auto()
    SETTLING = auto()


class ReadinessGate:
    """Closed for calls between a promise and the moment when the server has acted on it.

    `learn` is called with each new `habit`.
    """

    def __init__(
        self, habit: ServerProfile = ServerProfile.UNKNOWN, learn: OnProfileChange | None = None
    ) -> None:
        self.habit = habit
        self._learn = learn
        self.deadline = math.inf
        """When to call `tick`; never where only the server or the daemon is waited for."""
        self.reads = False
        """Whether the server has ever asked for roots."""
        self.stale = False
        """Whether it was told of a change, did not ask again, and does not ask in calls."""
        self.in_doubt = False
        """Whether the roots are others, and it is not known yet which."""
        self.is_at_work: Callable[[], bool] = _is_not
        """Whether the server is; false where that cannot be told."""
        self._ignores_changes = False
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
        self.stale = self._ignores_changes = False
        self._first_until = now + _FIRST_CAP_S
        if self.habit.asks_at_once:
            self._promise(now, _CAP_S)
        elif self.habit is ServerProfile.UNKNOWN:
            self._promise(now, _FIRST_CAP_S)

    def change(self, now: float) -> None:
        """The server is told that its roots are others."""
        if not self.reads or self.habit is ServerProfile.IN_CALLS:
            return
        if self._ignores_changes:
            self._note_stale()
        else:
            self._promise(now, _CHANGE_CAP_S)

    def asked(self, now: float) -> None:
        """The server asks, and handles no call. It is not to blame for a late answer."""
        if now <= self._first_until:
            self._set(ServerProfile.BOTH if self.habit.asks_in_calls else ServerProfile.ASKS)
        self.reads = True
        self.stale = self._ignores_changes = False
        if self._phase is not _Phase.OPEN:
            self._slowness = min(2 * (now - self._promised_at), _SETTLE_SLOW_S)
            self._phase = _Phase.ASKED
            self.deadline = math.inf

    def asked_in_call(self) -> None:
        """The server asks while it handles a call."""
        self._set(ServerProfile.BOTH if self.habit.asks_at_once else ServerProfile.IN_CALLS)
        self.reads = True
        self.stale = False
        if self.habit is ServerProfile.IN_CALLS:
            self.open()

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
                self._ignores_changes = True
                self._note_stale()
            else:
                self._set(
                    ServerProfile.IN_CALLS if self.habit.asks_in_calls else ServerProfile.SILENT
                )
        self.open()

    def open(self) -> None:
        """Hold nothing any more for the server's sake: there is nothing to wait for."""
        self._phase = _Phase.OPEN
        self.deadline = math.inf

    def _note_stale(self) -> None:
        self.stale = not self.habit.asks_in_calls

    def _set(self, habit: ServerProfile) -> None:
        if habit is not self.habit:
            self.habit = habit
            if self._learn is not None:
                self._learn(habit)

    def _promise(self, now: float, cap: float) -> None:
        self._phase = _Phase.PROMISED
        self._promised_at = now
        self.deadline = now + cap


def _is_not() -> bool:
    return False
