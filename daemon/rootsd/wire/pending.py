"""Which requests of one connection still lack an answer, from the bytes that pass both ways.

Whoever carries a connection for somebody else uses this to answer them when the far end is lost.
It only looks: what it cannot read it leaves alone.
"""

from __future__ import annotations

import json

from rootsd.wire.jsonrpc import Batch, Id, Malformed, Message, Notice, Request, parse
from rootsd.wire.lines import LineReader, LineTooLong

_CANCELLED = "notifications/cancelled"
_LONGEST_ID = 256
_LONGEST_REQUEST = 1 << 20
# How the daemon starts every answer; an id lies within the head of its line.
_ANSWER = b'{"jsonrpc":"2.0","id":'
_HEAD = len(_ANSWER) + 2 * _LONGEST_ID


class Pending:
    """Feed it what passes, in order; `drain` gives the requests without an answer."""

    def __init__(self) -> None:
        self._ids: dict[tuple[type, Id], Id] = {}  # 1 and "1" are two ids
        self._asked: LineReader | None = LineReader(_LONGEST_REQUEST)
        self._head = bytearray()

    def ask(self, data: bytes) -> None:
        """Look at bytes on their way to the daemon."""
        if self._asked is None:
            return
        self._asked.feed(data)
        try:
            while (line := self._asked.pop()) is not None:
                message = parse(line)
                for member in message.members if isinstance(message, Batch) else (message,):
                    self._note(member)
        except LineTooLong:  # the daemon closes such a connection
            self._asked = None

    def answer(self, data: bytes) -> None:
        """Look at bytes on their way back. A long answer is not kept, only its first bytes."""
        first, *rest = data.split(b"\n")
        self._head += first[: _HEAD - len(self._head)]
        for part in rest:
            self._settle()
            self._head[:] = part[:_HEAD]

    def drain(self) -> list[Id]:
        """The ids that lack an answer, oldest first and as they were spelled; forgets them."""
        ids = list(self._ids.values())
        self._ids.clear()
        return ids

    def _note(self, message: Message | Malformed) -> None:
        match message:
            case Request(id_) if len(str(id_)) <= _LONGEST_ID:
                self._ids[type(id_), id_] = id_
            case Notice(method, {"requestId": int() | str() as id_}) if method == _CANCELLED:
                self._ids.pop((type(id_), id_), None)
            case _:
                pass

    def _settle(self) -> None:
        if not self._head.startswith(_ANSWER):
            return
        text = self._head[len(_ANSWER) :].decode(errors="replace")
        try:
            id_, _ = json.JSONDecoder().raw_decode(text)
        except ValueError:
            return
        self._ids.pop((type(id_), id_), None)
