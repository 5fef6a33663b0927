"""The questions that the relay for git has for a person, who answers them to the wall's owner."""

from __future__ import annotations

import socket
from contextlib import suppress
from enum import Enum

from rootsd.core.paths import text_of

QUESTION, YES, NO = b"?", b"y", b"n"
MAX_PACKET = 1 << 16


class Asked(Enum):
    """Who answers the questions of a relay."""

    PERSON = "the person, on the terminal"
    NOBODY = "nobody, because there is no terminal"


class RelayQuestions:
    """The questions of a relay, one at a time."""

    def __init__(self, channel: socket.socket) -> None:
        channel.settimeout(0)
        self._channel = channel
        self._open = b""

    def fileno(self) -> int:
        """Return the descriptor to wait for, or -1 after the end of the relay."""
        return self._channel.fileno()

    def take(self) -> str:
        """Return the question that is open now, or an empty text if there is none any more."""
        data = b""
        with suppress(OSError):
            data = self._channel.recv(MAX_PACKET)
        if not data:
            self._channel.close()
        self._open = data[1:]
        return text_of(self._open)

    def answer(self, word: bytes) -> None:
        """Answer the open question with YES or NO."""
        with suppress(OSError):
            self._channel.send(word + self._open)
