"""What a session wants done: bytes for either side, and words for the daemon. Pure."""

from __future__ import annotations

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
