"""Track the client's unanswered requests, and decide which ones a new daemon may get. Pure.

Each request gets exactly one answer: from a daemon, or an error from here. After that it is
forgotten. `ReplayRole` says for each method what to do if the daemon is lost before it answers,
and what its answer means for the session. Methods that this table does not know are never
repeated.
"""

from __future__ import annotations

from enum import Enum, auto

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES, ErrorResponse, Id, Request, encode
from rootsd.wire.mcp_messages import encode_error


class ReplayRole(Enum):
    """The meaning of a request for a session that moves to another daemon."""

    ONCE = auto()
    """Never repeat it: the first daemon may have carried it out."""
    REPEAT = auto()
    INITIALIZE = auto()
    SUBSCRIBE = auto()
    UNSUBSCRIBE = auto()
    LISTEN = auto()
    ROOTS = auto()
    HELLO = auto()


_ROLES = {
    "completion/complete": ReplayRole.REPEAT,
    "initialize": ReplayRole.INITIALIZE,
    "logging/setLevel": ReplayRole.REPEAT,
    "ping": ReplayRole.REPEAT,
    "prompts/get": ReplayRole.REPEAT,
    "prompts/list": ReplayRole.REPEAT,
    "resources/list": ReplayRole.REPEAT,
    "resources/read": ReplayRole.REPEAT,
    "resources/subscribe": ReplayRole.SUBSCRIBE,
    "resources/templates/list": ReplayRole.REPEAT,
    "resources/unsubscribe": ReplayRole.UNSUBSCRIBE,
    "roots/list": ReplayRole.ROOTS,
    "server/discover": ReplayRole.REPEAT,
    "subscriptions/listen": ReplayRole.LISTEN,
    "tools/list": ReplayRole.REPEAT,
}
# request_root is safe: a folder that already waits for a decision is not added again.
_REPEATABLE_TOOLS = frozenset({"list_roots", "request_root", "resolve_root"})


def replay_role_of(request: Request) -> ReplayRole:
    """Return the role of a client's request. An unknown method is never repeated."""
    match request:
        case Request(_, "tools/call", {"name": str() as name}):
            return ReplayRole.REPEAT if name in _REPEATABLE_TOOLS else ReplayRole.ONCE
        case _:
            return _ROLES.get(request.method, ReplayRole.ONCE)


# A request that crashes the daemon must not crash every later one.
_MAX_SENDS = 3
_MAX_HELD_BYTES = 1 << 20
_MAX_HELD = 256


class BatchAnswers:
    """The answers to a batch whose requests a daemon answers one by one.

    That happens after a change of daemons, and with a daemon of version 0.1.0. The client gets all
    answers in one line nevertheless (JSON-RPC 2.0, section 6).
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


class PendingRequest:
    """A request without an answer.

    `line` is None if the request is too long to keep. `sent_count` counts the daemons that got it.
    `is_stream` says that it opened a stream, so its answer ends the stream. `parts` collects the
    answers of its batch.
    """

    __slots__ = ("is_stream", "line", "parts", "request", "role", "sent_count")

    def __init__(
        self,
        request: Request,
        line: bytes | None,
        sent_count: int,
        parts: BatchAnswers | None = None,
    ) -> None:
        self.parts = parts
        self.request = request
        self.role = replay_role_of(request)
        self.line = line
        self.sent_count = sent_count
        self.is_stream = False

    @property
    def may_replay(self) -> bool:
        """Whether the next daemon may get a request that an earlier one already had."""
        if self.is_stream:
            return True
        return (
            self.role is not ReplayRole.ONCE
            and self.line is not None
            and self.sent_count < _MAX_SENDS
        )


class PendingRequests:
    """The client's requests without an answer, in the order in which they came."""

    def __init__(self) -> None:
        self._entries: dict[Id, PendingRequest] = {}  # 1 and "1" are two ids, and two keys
        self._held_bytes = 0

    def __bool__(self) -> bool:
        """Return whether the client waits for anything except the end of a stream."""
        return any(not entry.is_stream for entry in self._entries.values())

    @property
    def is_full(self) -> bool:
        """Whether to accept no more requests while there is no daemon."""
        return len(self._entries) >= _MAX_HELD or self._held_bytes >= _MAX_HELD_BYTES

    def add(
        self, request: Request, line: bytes, *, forwarded: bool, parts: BatchAnswers | None = None
    ) -> None:
        """Add a request. `forwarded`: a daemon already has it. `parts`: its batch."""
        if request.id in self._entries:
            return  # the daemon refuses the second request, and still answers the first
        fits = (
            len(line) <= MAX_REQUEST_BYTES + 1 and self._held_bytes + len(line) <= _MAX_HELD_BYTES
        )
        if parts is not None:
            parts.expect()
        self._entries[request.id] = PendingRequest(
            request, line if fits else None, int(forwarded), parts
        )
        self._held_bytes += len(line) if fits else 0

    def remove(self, id_: Id) -> PendingRequest | None:
        """Remove and return a request that was answered or cancelled."""
        entry = self._entries.pop(id_, None)
        if entry is not None:
            self._held_bytes -= len(entry.line or b"")
        return entry

    def open_stream(self, id_: Id) -> bool | None:
        """Note that a stream is open. Return whether that is new, or None for an unknown
        request.
        """
        entry = self._entries.get(id_)
        if entry is None:
            return None
        first = not entry.is_stream
        entry.is_stream = True
        return first

    def connection_lost(self) -> bytes:
        """Return error answers for the requests that no other daemon may get."""
        error = DaemonUnreachable("rootsd was restarted before it answered", "ask again")
        return b"".join(
            self._refuse(entry, error)
            for entry in tuple(self._entries.values())
            if entry.sent_count and not entry.may_replay
        )

    def fail_all(self, error: RootsdError) -> bytes:
        """Answer everything that the client waits for with `error`, except for open streams."""
        waiting = [entry for entry in self._entries.values() if not entry.is_stream]
        return b"".join(self._refuse(entry, error) for entry in waiting)

    def replay(self) -> tuple[bytes, bytes]:
        """Return the error answers for the client, and the lines for the new daemon."""
        too_long = RootsdError("the request is too long", "ask for less")
        everything = tuple(self._entries.values())
        refused = [self._refuse(entry, too_long) for entry in everything if entry.line is None]
        lines = []
        for entry in self._entries.values():
            entry.sent_count += 1
            lines.append(entry.line or b"")
        return b"".join(refused), b"".join(lines)

    def _refuse(self, entry: PendingRequest, error: RootsdError) -> bytes:
        self.remove(entry.request.id)
        line = encode_error(entry.request.id, error)
        return line if entry.parts is None else entry.parts.add(line)
