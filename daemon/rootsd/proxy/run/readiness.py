"""Hold a client's calls until the server has loaded its current roots. Pure.

Many servers load their roots in the background. Right after the handshake, such a server would
refuse a call for an approved folder. Right after a denial, it would accept a call for a denied
one. No message says when a server has finished loading. So the gate waits until the server has
asked, got its answer, and then rested for a moment.

Other servers ask for roots during each call. The gate never holds their calls. `ServerProfile`
records which kind a server is, so that the next start waits only if that is useful.

A third kind asks during its first call and keeps the answer. One question does not tell the two
apart (`rootsd.proxy.run.call_watch` does). Until a later call has shown it, the gate takes the
safe side: such a server is stale after a change that it did not ask about.

Times are seconds of a clock that never goes back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum, StrEnum, auto

_STARTUP_S = 1.0  # a question this soon after the handshake is the server's own: most ask at once
_UNKNOWN_WAIT_S = 0.25  # a server that has never asked at that point
_KNOWN_WAIT_S = 5.0  # a server that is known to ask, on a busy machine
_CHANGE_WAIT_S = 1.0  # the same after a change, which most follow
_SETTLE_S = 0.05  # measured: server-filesystem needs up to 20 ms
_SETTLE_PER_ROOT_S = 0.0002
_SETTLE_SLOW_S = 0.3  # at most this much more for a server that was slow to ask
_BUSY_WAIT_S = 0.5  # at most this much more for a busy server: some are busy for minutes
_RECHECK_S = 0.01


class ServerProfile(StrEnum):
    """When a server asks for roots. The values are stored (`rootsd.proxy.run.runtime_files`)."""

    UNKNOWN = "unknown"
    EARLY = "asks"
    """Right after the handshake."""
    SILENT = "silent"
    """Not before a call, and perhaps never."""
    IN_CALLS = "in calls"
    """In each call that needs its roots."""
    BOTH = "both"
    """Right after the handshake, and in each call that needs its roots."""

    @property
    def asks_in_calls(self) -> bool:
        """Whether the server asks again when it needs its roots."""
        return self in (ServerProfile.IN_CALLS, ServerProfile.BOTH)

    @property
    def asks_early(self) -> bool:
        """Whether to wait for the server after the handshake."""
        return self in (ServerProfile.EARLY, ServerProfile.BOTH)


OnProfileChange = Callable[[ServerProfile], None]


class _Phase(Enum):
    OPEN = auto()
    EXPECTING = auto()
    REQUESTED = auto()
    SETTLING = auto()


class ReadinessGate:
    """A gate that is closed for calls until the server has loaded its roots.

    `on_profile_change` is called with each new `profile`.
    """

    def __init__(
        self,
        profile: ServerProfile = ServerProfile.UNKNOWN,
        on_profile_change: OnProfileChange | None = None,
    ) -> None:
        self.profile = profile
        self._on_profile_change = on_profile_change
        self.deadline = math.inf
        """When to call `tick`; never while the gate waits for the server or the daemon."""
        self.has_asked = False
        """Whether the server has ever asked for roots."""
        self.stale = False
        """Whether the server may have earlier roots than the current ones, and keeps them."""
        self.may_ask_again = False
        """Whether the server asked in a call, and no later call has shown what it does next."""
        self.roots_outdated = False
        """Whether the roots have changed and the new ones are not known yet."""
        self.is_busy: Callable[[], bool] = _never_busy
        """Returns whether the server is busy; false if that is unknown."""
        self._ignores_changes = False
        self._phase = _Phase.OPEN
        self._startup_until = -1.0
        self._expected_since = -math.inf
        self._request_delay_s = 0.0
        self._open_by = math.inf

    @property
    def is_closed(self) -> bool:
        """Whether calls must wait."""
        return self.roots_outdated or self._phase is not _Phase.OPEN

    def handshake_done(self, now: float) -> None:
        """Note the end of the handshake. The server may ask for roots from now on."""
        self.stale = False
        self._startup_until = now + _STARTUP_S
        if self.profile.asks_early:
            self._expect_request(now, _KNOWN_WAIT_S)
        elif self.profile is ServerProfile.UNKNOWN:
            self._expect_request(now, _UNKNOWN_WAIT_S)

    @property
    def expects_request(self) -> bool:
        """Whether the server was told to ask for roots, or asks by itself after the handshake."""
        return self._phase is _Phase.EXPECTING

    def roots_changed(self, now: float) -> None:
        """Note that the server was notified of a change of its roots."""
        if not self.has_asked or self.profile is ServerProfile.IN_CALLS:
            return
        if self._ignores_changes:
            self._note_stale()
        else:
            wait = _CHANGE_WAIT_S if self.profile.asks_early else _UNKNOWN_WAIT_S
            self._expect_request(now, wait)

    def roots_changed_untold(self) -> None:
        """Note a change that no message can announce to the server (MCP 2026-07-28)."""
        if self.has_asked:
            self._note_stale()

    def roots_requested(self, now: float) -> None:
        """Note that the server asks for roots outside a call. Wait for the answer without limit,
        because the server is not to blame if it is late.
        """
        if now <= self._startup_until:
            self._set_profile(
                ServerProfile.BOTH if self.profile.asks_in_calls else ServerProfile.EARLY
            )
        else:
            self._ignores_changes = False  # the start alone says nothing about changes
        self.has_asked = True
        self.stale = False
        if self._phase is not _Phase.OPEN:
            self._request_delay_s = min(2 * (now - self._expected_since), _SETTLE_SLOW_S)
            self._phase = _Phase.REQUESTED
            self.deadline = math.inf

    def roots_requested_in_call(self) -> None:
        """Note that the server asks for roots in a call, perhaps for the only time."""
        self.has_asked = self.may_ask_again = True
        self.stale = False
        if self.profile is ServerProfile.UNKNOWN:
            self._set_profile(ServerProfile.SILENT)

    def asks_in_each_call(self) -> None:
        """Note that the server asked for roots in a call as it did in an earlier one."""
        self.roots_requested_in_call()
        self.may_ask_again = False
        self._set_profile(
            ServerProfile.BOTH if self.profile.asks_early else ServerProfile.IN_CALLS
        )
        if self.profile is ServerProfile.IN_CALLS:
            self.open()

    def keeps_roots(self) -> None:
        """Note that the server did not ask in a call in which it would ask again if it ever did.

        So the roots that it got last are those that it has.
        """
        self.may_ask_again = False
        self._set_profile(ServerProfile.EARLY if self.profile.asks_early else ServerProfile.SILENT)
        self._note_stale()

    def roots_sent(self, now: float, roots: int) -> None:
        """Note that the server got this number of roots, which it now loads from the disk."""
        if self._phase is _Phase.REQUESTED:
            self._phase = _Phase.SETTLING
            settling = _SETTLE_S + self._request_delay_s + roots * _SETTLE_PER_ROOT_S
            self.deadline = now + settling
            self._open_by = self.deadline + _BUSY_WAIT_S

    def tick(self, now: float) -> None:
        """Open the gate if it is time."""
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
        """Open the gate: there is nothing to wait for from this server."""
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
