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
        self.roots_queries = 0
        """How often the daemon is to be asked for the roots; each answer grants one wish."""
        self.proposals: list[bytes] = []
        """Folders that the user is to hear of."""
        self.reported_roots: tuple[str, ...] | None = None
        """The names of the roots that the server was told of last."""
        self.restart_requested = False
        """Whether the server is to be ended, and another one started."""
        self.dropped_lines: list[str] = []
        """What to say on standard error, where one peer cannot fill it."""

    @property
    def client_reads(self) -> bool:
        """Whether the client reads what it is told, so that more may be said."""
        return self.unread + len(self.to_client) < _MOST_UNREAD

    @property
    def server_lags(self) -> bool:
        """Whether the server leaves too much unread for the relay to say more."""
        return len(self.to_server) >= _MOST_UNREAD


_BURST = 3
_INTERVAL_S = 60.0


class DroppedLineReports:
    """Passes the first few messages on at once, and then one per minute with a count."""

    def __init__(self) -> None:
        self._printed = 0
        self._suppressed = 0
        self._next_at = 0.0

    def lines_to_print(self, messages: Iterable[str], now: float) -> Iterator[str]:
        """Return those of `messages` to print now, as whole lines. `now` never goes back."""
        for message in messages:
            if self._printed >= _BURST and now < self._next_at:
                self._suppressed += 1
                continue
            more = f" (and {self._suppressed} more)" if self._suppressed else ""
            self._printed, self._suppressed = self._printed + 1, 0
            self._next_at = now + _INTERVAL_S
            yield f"rootsd run: {message}{more}\n"
