"""Hold the calls of a client until it has said where it works. Pure.

A client of MCP before 2026-07-28 that declares roots is asked for them before each call, and the
call waits for the answer to a question that came after it.

Some clients declare roots and never answer, as the first Python SDK does. Others are slow at
first, such as those that ask a person whether to trust the folder. So no call is held once the
client has let the first question time out, until it answers that question after all.
"""

from __future__ import annotations

import math

from rootsd.core.errors import RootsdError
from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.client_roots import ClientRoots, Folders, folders_in
from rootsd.wire import mcp_messages
from rootsd.wire.jsonrpc import (
    INVALID_REQUEST,
    MAX_REQUEST_BYTES,
    ErrorResponse,
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    encode,
)

TOO_LONG = RootsdError("the request is too long", "ask for less")
_TOO_MANY = RootsdError("too many calls wait for the client's roots", "ask again")
_MAX_HELD = 256
_MAX_HELD_BYTES = 1 << 20


class Released(NamedTuple):
    """What an event means for the held calls."""

    to_client: bytes = b""
    """The lines to send to the client."""
    folders: Folders | None = None
    """Where the session works now, if the client has said so."""
    lines: bytes = b""
    """The calls that go on, after the daemon knows these folders."""


class _HeldCall(NamedTuple):
    """A call that waits for the answer to a question after question number `after`."""

    after: int
    line: bytes


class HeldCalls:
    """The calls of one client that wait."""

    def __init__(self) -> None:
        self._client = ClientRoots("rootsd-bridge-place-", folders_in, "ask again")
        self._held: dict[Id, _HeldCall] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        return self._client.deadline if self._held else math.inf

    def tick(self, now: float) -> Released:
        """Stop waiting for a client that does not answer."""
        self._client.tick(now)
        return self._release(now)

    def hold(self, call: Request, line: bytes, now: float) -> Released:
        """Hold a call, or let it go on or answer it if that is not possible. `line` ends with a
        newline.
        """
        if self._client.is_silent:
            return Released(lines=line)
        if call.id in self._held:
            reason = "a request with this id is still open"
            return Released(encode(ErrorResponse(call.id, INVALID_REQUEST, reason)))
        if len(line) > MAX_REQUEST_BYTES + 1:
            return Released(mcp_messages.encode_error(call.id, TOO_LONG))
        size = sum(len(each.line) for each in self._held.values())
        if len(self._held) >= _MAX_HELD or size + len(line) > _MAX_HELD_BYTES:
            return Released(mcp_messages.encode_error(call.id, _TOO_MANY))
        self._held[call.id] = _HeldCall(self._client.asked, line)
        return Released(self._client.ask_again(now))

    def take(self, message: Message | Malformed, now: float) -> Released | None:
        """Take an answer to a question, or the cancellation of a held call. Return None for any
        other message.
        """
        match message:
            case Response() | ErrorResponse() if self._client.is_ours(message.id):
                self._client.take(message)
                return self._release(now)
            case Notification() if (id_ := mcp_messages.cancelled_id(message)) in self._held:
                del self._held[id_]
                return Released()
            case _:
                return None

    def _release(self, now: float) -> Released:
        said = self._client.statement
        if isinstance(said, RootsdError) and self._client.first_statement is None:
            return Released(lines=self._pop(list(self._held)))
        known = [id_ for id_, call in self._held.items() if call.after < self._client.heard]
        lines = self._pop(known)
        question = self._client.ask_again(now) if self._held else b""
        if isinstance(said, RootsdError):
            errors = [mcp_messages.encode_error(id_, said) for id_ in known]
            return Released(b"".join(errors) + question)
        return Released(question, said, lines)

    def _pop(self, ids: list[Id]) -> bytes:
        return b"".join([self._held.pop(id_).line for id_ in ids])
