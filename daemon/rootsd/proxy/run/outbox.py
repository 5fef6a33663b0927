"""Collect what a session sends, and limit how often it reports dropped lines. Pure.

The session fills an `Outbox` and the loop that holds the pipes empties it, so the session needs no
I/O. Any peer can cause a report with each line, and standard error often goes to a log file of the
client. So `DroppedLineReports` prints a few reports at once and then few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rootsd.wire.hello import WorkFolders

_MOST_UNREAD = 1 << 20
"""With this many unread bytes, a side gets no more messages of the proxy itself."""


class Outbox:
    """The output of a session: bytes for the client and the server, and requests to the loop."""

    def __init__(self) -> None:
        self.to_client = bytearray()
        self.to_server = bytearray()
        self.unread = 0
        """How many bytes wait for the client outside this outbox."""
        self.roots_queries = 0
        """How often to query the daemon for the roots. Each response answers one query."""
        self.move: WorkFolders | None = None
        """Where the session works now, if the daemon has to know."""
        self.proposals: list[bytes] = []
        """Folders to propose to the user."""
        self.reported_roots: tuple[str, ...] | None = None
        """The names of the roots that the server got last."""
        self.restart_requested = False
        """Whether to end the server and start another one."""
        self.dropped_lines: list[str] = []
        """Messages for standard error, at a limited rate."""

    @property
    def client_reads(self) -> bool:
        """Whether the client reads its input, so that the proxy may send it more."""
        return self.unread + len(self.to_client) < _MOST_UNREAD

    @property
    def server_lags(self) -> bool:
        """Whether the server leaves too much unread for the proxy to send it more."""
        return len(self.to_server) >= _MOST_UNREAD


_BURST = 3
_INTERVAL_S = 60.0


class DroppedLineReports:
    """A rate limit: the first few messages at once, then one per minute with a count."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._printed = 0
        self._suppressed = 0
        self._next_at = 0.0

    def lines_to_print(self, messages: Iterable[str], now: float) -> Iterator[str]:
        """Yield the lines to print now for `messages`. `now` never goes back."""
        for message in messages:
            if self._printed >= _BURST and now < self._next_at:
                self._suppressed += 1
                continue
            more = f" (and {self._suppressed} more)" if self._suppressed else ""
            self._printed, self._suppressed = self._printed + 1, 0
            self._next_at = now + _INTERVAL_S
            yield f"{self._verb}: {message}{more}\n"
