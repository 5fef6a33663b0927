"""Collect the answers to one batch. Pure."""

from __future__ import annotations

from rootsd.wire.jsonrpc import ErrorResponse, encode


class BatchAnswers:
    """The answers to a batch whose requests a daemon answers one by one.

    That happens after a change of daemons. The client gets all answers in one line nevertheless
    (JSON-RPC 2.0, section 6).
    """

    __slots__ = ("_answers", "_missing")

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._missing = 0

    def expect(self) -> None:
        """Count one more answer to wait for."""
        self._missing += 1

    def add_error(self, error: ErrorResponse) -> None:
        """Add the answer to a member of the batch that is not a valid request."""
        self._answers.append(encode(error).rstrip(b"\n"))

    def add(self, line: bytes) -> bytes:
        """Add an answer, or b"" for a cancelled request. Return the whole batch after the last
        one.
        """
        self._missing -= 1
        if line:
            self._answers.append(line.rstrip(b"\n"))
        return b"" if self._missing else self.join()

    def join(self) -> bytes:
        """Return one line with all answers, or b"" if there are none."""
        if not self._answers:
            return b""
        return b"[" + b",".join(self._answers) + b"]\n"
