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

_FIRST_WAIT_S = 1.0  # a server not seen before: some ask a third of a second after the handshake
_KNOWN_WAIT_S = 5.0  # one that is known to ask, on a busy machine
_CHANGE_WAIT_S = 1.0
_SETTLE_S = 0.05  # measured: 20 ms are enough for server-filesystem, none are not
_SETTLE_PER_ROOT_S = 0.0002
_SETTLE_SLOW_S = 0.3  # more at most for a server that was slow to ask: then all takes it longer
_BUSY_WAIT_S = 0.5  # more at most for one that is at work: some are for minutes
_RECHECK_S = 0.01


class ServerProfile(StrEnum):
    """When a server asks for roots. The values are stored: see
    `rootsd.proxy.run.runtime_files`."""

    UNKNOWN = "unknown"
    EARLY = "asks"
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
    def asks_early(self) -> bool:
        """Whether the server is waited for after the handshake."""
        return self in (ServerProfile.EARLY, ServerProfile.BOTH)


OnProfileChange = Callable[[ServerProfile], None]


class _Phase(Enum):
    OPEN = auto()
    EXPECTING = auto()
    REQUESTED = auto()
    SETTLING = auto()


class ReadinessGate:
    """Closed for calls between a promise and the moment when the server has acted on it.

    `learn` is called with each new `profile`.
    """

    def __init__(
        self,
        profile: ServerProfile = ServerProfile.UNKNOWN,
        on_profile_change: OnProfileChange | None = None,
    ) -> None:
        self.profile = profile
        self._on_profile_change = on_profile_change
        self.deadline = math.inf
        """When to call `tick`; never where only the server or the daemon is waited for."""
        self.has_asked = False
        """Whether the server has ever asked for roots."""
        self.stale = False
        """Whether it was told of a change, did not ask again, and does not ask in calls."""
        self.roots_outdated = False
        """Whether the roots are others, and it is not known yet which."""
        self.is_busy: Callable[[], bool] = _never_busy
        """Whether the server is; false where that cannot be told."""
        self._ignores_changes = False
        self._phase = _Phase.OPEN
        self._startup_until = -1.0
        self._expected_since = -math.inf
        self._request_delay_s = 0.0
        self._open_by = math.inf

    @property
    def is_closed(self) -> bool:
        """Whether calls have to wait."""
        return self.roots_outdated or self._phase is not _Phase.OPEN

    def handshake_done(self, now: float) -> None:
        """The handshake is over: the server may ask now."""
        self.stale = self._ignores_changes = False
        self._startup_until = now + _FIRST_WAIT_S
        if self.profile.asks_early:
            self._expect_request(now, _KNOWN_WAIT_S)
        elif self.profile is ServerProfile.UNKNOWN:
            self._expect_request(now, _FIRST_WAIT_S)

    def roots_changed(self, now: float) -> None:
        """The server is told that its roots are others."""
        if not self.has_asked or self.profile is ServerProfile.IN_CALLS:
            return
        if self._ignores_changes:
            self._note_stale()
        else:
            self._expect_request(now, _CHANGE_WAIT_S)

    def roots_requested(self, now: float) -> None:
        """The server asks, and handles no call. It is not to blame for a late answer."""
        if now <= self._startup_until:
            self._set_profile(
                ServerProfile.BOTH if self.profile.asks_in_calls else ServerProfile.EARLY
            )
        self.has_asked = True
        self.stale = self._ignores_changes = False
        if self._phase is not _Phase.OPEN:
            self._request_delay_s = min(2 * (now - self._expected_since), _SETTLE_SLOW_S)
            self._phase = _Phase.REQUESTED
            self.deadline = math.inf

    def roots_requested_in_call(self) -> None:
        """The server asks while it handles a call."""
        self._set_profile(
            ServerProfile.BOTH if self.profile.asks_early else ServerProfile.IN_CALLS
        )
        self.has_asked = True
        self.stale = False
        if self.profile is ServerProfile.IN_CALLS:
            self.open()

    def roots_sent(self, now: float, roots: int) -> None:
        """It was told so many roots, which it now looks at on the disk."""
        if self._phase is _Phase.REQUESTED:
            self._phase = _Phase.SETTLING
            settling = _SETTLE_S + self._request_delay_s + roots * _SETTLE_PER_ROOT_S
            self.deadline = now + settling
            self._open_by = self.deadline + _BUSY_WAIT_S

    def tick(self, now: float) -> None:
        """Open where the time has come."""
        if now < self.deadline:
            return
        if self._phase is _Phase.SETTLING and now < self._open_by and self.is_busy():
            self.deadline = now + _RECHECK_S
            return
        if self._phase is _Phase.EXPECTING:
            if self.has_asked:
                self._ignores_changes = True
                self._note_stale()
            else:
                self._set_profile(
                    ServerProfile.IN_CALLS if self.profile.asks_in_calls else ServerProfile.SILENT
                )
        self.open()

    def open(self) -> None:
        """Hold nothing any more for the server's sake: there is nothing to wait for."""
        self._phase = _Phase.OPEN
        self.deadline = math.inf

    def _note_stale(self) -> None:
        self.stale = not self.profile.asks_in_calls

    def _set_profile(self, profile: ServerProfile) -> None:
        if profile is not self.profile:
            self.profile = profile
            if self._on_profile_change is not None:
                self._on_profile_change(profile)

    def _expect_request(self, now: float, cap: float) -> None:
        self._phase = _Phase.EXPECTING
        self._expected_since = now
        self.deadline = now + cap


def _never_busy() -> bool:
    return False
