"""Collect what a session sends, and limit how often it reports dropped lines. Pure.

What a session wants done: bytes for either side, and words for the daemon. Pure.

Messages on standard error about lines that were dropped, at a limited rate. Pure.

A peer can cause one with each line, and standard error often goes to a log file of the client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_MOST_UNREAD = 1 << 20
"""Bytes that a side may leave unread before the relay stops saying more on its own account."""


class Outbox:
    """Filled by the session, emptied by the program that holds the pipes."""

    def __init__(self) -> None:
        self.to_client = bytearray()
        self.to_server = bytearray()
        self.unread = 0
        """How many more bytes wait for the client outside of this outbox."""
        self.questions = 0
        """How often the daemon is to be asked for the roots; each answer grants one wish."""
        self.proposals: list[bytes] = []
        """Folders that the user is to hear of."""
        self.told: tuple[str, ...] | None = None
        """The names of the roots that the server was told of last."""
        self.wants_another = False
        """Whether the server is to be ended, and another one started."""
        self.complaints: list[str] = []
        """What to say on standard error, where one peer cannot fill it."""

    @property
    def client_reads(self) -> bool:
        """Whether the client reads what it is told, so that more may be said."""
        return self.unread + len(self.to_client) < _MOST_UNREAD

    @property
    def server_lags(self) -> bool:
        """Whether the server leaves too much unread for the relay to say more."""
        return len(self.to_server) >= _MOST_UNREAD


_AT_ONCE = 3
_BETWEEN_S = 60.0


class DroppedLineReports:
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
