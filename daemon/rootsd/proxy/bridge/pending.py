"""Track the client's unanswered requests and decide which ones a new daemon may be asked again.
Pure.

What each request means for a session that has to be brought to another daemon. Pure.

The requests of one client that lack an answer, kept so that another daemon can be asked. Pure.

Every request is answered once: by a daemon, or with an error from here, and then forgotten.
"""

from __future__ import annotations

from enum import Enum, auto

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.wire.jsonrpc import MAX_REQUEST_BYTES, ErrorResponse, Id, Request, encode
from rootsd.wire.mcp_messages import encode_error


class ReplayRole(Enum):
    """What to do about a request when the daemon that has it is lost, or has answered it."""

    ONCE = auto()
    """Not to be asked twice: it may have done something, and might do it again."""
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
# request_root too: a folder that waits for a decision is not made to wait twice.
_REPEATABLE_TOOLS = frozenset({"list_roots", "request_root", "resolve_root"})


def replay_role_of(request: Request) -> ReplayRole:
    """The role of a client's request; what is not known here may not be asked twice."""
    match request:
        case Request(_, "tools/call", {"name": str() as name}):
            return ReplayRole.REPEAT if name in _REPEATABLE_TOOLS else ReplayRole.ONCE
        case _:
            return _ROLES.get(request.method, ReplayRole.ONCE)


# A request that the daemon dies of must not be brought to each next one.
_MAX_SENDS = 3
_MAX_HELD_BYTES = 1 << 20
_MAX_HELD = 256


class BatchAnswers:
    """The answers to a batch of which a daemon answers each request alone.

    That happens if another daemon is asked, and with a daemon of version 0.1.0. The client gets
    the answers in one line all the same (JSON-RPC 2.0, section 6).
    """

    __slots__ = ("_answers", "_missing")

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._missing = 0

    def expect(self) -> None:
        """Wait for one more answer."""
        self._missing += 1

    def add_error(self, error: ErrorResponse) -> None:
        """Take the answer to a message of the batch that is no request."""
        self._answers.append(encode(error).rstrip(b"\n"))

    def add(self, line: bytes) -> bytes:
        """Take an answer, or b"" for a cancelled request; return all after the last one."""
        self._missing -= 1
        if line:
            self._answers.append(line.rstrip(b"\n"))
        return b"" if self._missing else self.join()

    def join(self) -> bytes:
        """Return the line with all answers, empty if there is none."""
        if not self._answers:
            return b""
        return b"[" + b",".join(self._answers) + b"]\n"


class PendingRequest:
    """A request. `line` is None where it is too long to be kept; `sent_count` counts the daemons that
    were asked; `is_stream`: it opened a stream, so that its answer is the stream's end; `parts`
    takes its answer if it came in a batch."""

    __slots__ = ("line", "parts", "request", "role", "is_stream", "sent_count")

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
        """Whether the next daemon may be asked, though one was asked already."""
        if self.is_stream:
            return True
        return (
            self.role is not ReplayRole.ONCE
            and self.line is not None
            and self.sent_count < _MAX_SENDS
        )


class PendingRequests:
    """The requests in the order in which they came."""

    def __init__(self) -> None:
        self._entries: dict[Id, PendingRequest] = {}  # 1 and "1" are two ids, and two keys
        self._held_bytes = 0

    def __bool__(self) -> bool:
        """Whether the client waits for anything but the end of a stream."""
        return any(not entry.is_stream for entry in self._entries.values())

    @property
    def is_full(self) -> bool:
        """Whether no more should be taken while there is no daemon."""
        return len(self._entries) >= _MAX_HELD or self._held_bytes >= _MAX_HELD_BYTES

    def add(
        self, request: Request, line: bytes, *, forwarded: bool, parts: BatchAnswers | None = None
    ) -> None:
        """Take a request in; `forwarded`: a daemon has got it; `parts`: those of its batch."""
        if request.id in self._entries:
            return  # the daemon refuses the second one, and answers the first one still
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
        """Forget a request, which was answered or is cancelled."""
        entry = self._entries.pop(id_, None)
        if entry is not None:
            self._held_bytes -= len(entry.line or b"")
        return entry

    def open_stream(self, id_: Id) -> bool | None:
        """A stream was opened: whether for the first time. None where it is nobody's."""
        entry = self._entries.get(id_)
        if entry is None:
            return None
        first = not entry.is_stream
        entry.is_stream = True
        return first

    def connection_lost(self) -> bytes:
        """The daemon is lost: the answers to what cannot be asked again."""
        error = DaemonUnreachable("rootsd was restarted before it answered", "ask again")
        return b"".join(
            self._refuse(entry, error)
            for entry in tuple(self._entries.values())
            if entry.sent_count and not entry.may_replay
        )

    def fail_all(self, error: RootsdError) -> bytes:
        """Answer all that the client waits for with `error`; is_stream stay as they are."""
        waiting = [entry for entry in self._entries.values() if not entry.is_stream]
        return b"".join(self._refuse(entry, error) for entry in waiting)

    def replay(self) -> tuple[bytes, bytes]:
        """Answers to what cannot be asked, and the lines for a new daemon."""
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
