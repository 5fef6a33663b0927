"""Keep the lines of a client that wait, in their order. Pure.

A batch is one line (MCP 2025-03-26). A request in it can be cancelled alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.run.call_watch import CALL_METHODS
from rootsd.proxy.run.place import CallPlace
from rootsd.wire import jsonrpc, mcp_messages
from rootsd.wire.jsonrpc import Batch, Id, Malformed, Message, Notification, Request, parse_strict

ParsedLine = Message | Batch | Malformed
ForwardMember = Callable[[bytes, Message | Malformed, float], bytes | None]


def forward_batch(line: bytes, batch: Batch, now: float, forward: ForwardMember) -> bytes | None:
    """Return the line for a batch whose members were passed to `forward`, or None.

    The bytes between the members stay the same, unless a member is removed.
    """
    text = line.decode()
    places = jsonrpc.element_spans(text)
    parts = [text[start:end].encode() for start, end in places]
    outcome = [forward(*each, now) for each in zip(parts, batch.members, strict=True)]
    kept = [part for part in outcome if part is not None]
    if len(kept) < len(parts):
        return b"[" + b",".join(kept) + b"]" if kept else None
    gaps = [0, *(end for _, end in places)]
    before = [text[gap:start].encode() for gap, (start, _) in zip(gaps, places, strict=False)]
    return b"".join(map(bytes.__add__, before, kept)) + text[gaps[-1] :].encode()


class QueuedLine(NamedTuple):
    """A line of the client that waits, with what it says about its place if it depends on one."""

    line: bytes
    message: ParsedLine
    place: CallPlace | None


class ClientQueue:
    """The lines that wait. It is false if there are none."""

    def __init__(self) -> None:
        self.size = 0
        """How many bytes wait."""
        self._lines: deque[QueuedLine] = deque()

    def __bool__(self) -> bool:
        return bool(self._lines)

    @property
    def first(self) -> QueuedLine:
        """The line that is next."""
        return self._lines[0]

    def append(self, queued: QueuedLine) -> None:
        """Add a line at the end."""
        self._lines.append(queued)
        self.size += len(queued.line)

    def take(self) -> QueuedLine:
        """Remove the first line, and return it."""
        queued = self._lines.popleft()
        self.size -= len(queued.line)
        return queued

    def cancel(self, notification: Notification) -> bool:
        """Remove the request that a notification cancels. Return whether it was there."""
        id_ = mcp_messages.cancelled_id(notification)
        for number, queued in enumerate(self._lines):
            line, message, _ = queued
            if id_ is None or not _contains_request(message, id_):
                continue
            kept = _without_request(line, message, id_)
            self.size += len(kept or b"") - len(line)
            del self._lines[number]
            if kept is not None:
                rest = queued._replace(line=kept, message=parse_strict(kept))
                self._lines.insert(number, rest)
            return True
        return False


def contains_call(message: ParsedLine) -> bool:
    """Whether a line contains a request for which a server may need its roots."""
    if isinstance(message, Batch):
        return any(contains_call(member) for member in message.members)
    return isinstance(message, Request) and message.method in CALL_METHODS


def _contains_request(message: ParsedLine, id_: Id) -> bool:
    members = message.members if isinstance(message, Batch) else (message,)
    return any(isinstance(each, Request) and each.id == id_ for each in members)


def _without_request(line: bytes, message: ParsedLine, id_: Id) -> bytes | None:
    """Return the line without the request `id_`, or None if nothing else is in it."""

    def keep(part: bytes, member: Message | Malformed, _: float) -> bytes | None:
        return None if _contains_request(member, id_) else part

    return forward_batch(line, message, 0.0, keep) if isinstance(message, Batch) else None
