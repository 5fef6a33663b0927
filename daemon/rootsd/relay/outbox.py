"""What a session wants done: bytes for either side, and words for the daemon."""

from __future__ import annotations


class Outbox:
    """Filled by the session, emptied by whoever holds the pipes."""

    def __init__(self) -> None:
        self.to_client = bytearray()
        self.to_server = bytearray()
        self.questions = 0
        """How often the daemon is to be asked for the roots; each answer grants one wish."""
        self.proposals: list[bytes] = []
        """Folders that the user is to hear of."""
        self.told: tuple[str, ...] | None = None
        """The names of the roots that the server was told of last."""
        self.wants_another = False
        """Whether the server is to be ended, and another one started."""
