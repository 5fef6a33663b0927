"""What passes between daemon and helper.

On the channel, a stream socket pair: for each question a header of fixed size, and with it one end
of another socket pair. On that: the question up to its end, then the answer, and no more. So the
helper never reads a question nor waits for a reader, and an answer that is cut off shows as such.
The other way the channel carries single bytes: whether there is a helper at the moment.
"""

from __future__ import annotations

import socket
import struct
from enum import Enum, IntEnum

from rootsd.host.helper.duties import Duty

QUESTION_LIMIT = 16 << 20
ANSWER_LIMIT = 16 << 20
_HEADER = struct.Struct("!II")
_FRAME = struct.Struct("!BI")


class Garbled(Exception):
    """What came is not what this protocol says."""


class Sign(bytes, Enum):
    """What the keeper tells the daemon of its helper."""

    STARTED = b"+"
    LOST = b"-"


class Outcome(IntEnum):
    """Whether a worker could answer; else the body is the name of what it raised."""

    ANSWERED = 0
    FAILED = 1


def send_header(channel: socket.socket, duty: Duty, seconds: float, reply: socket.socket) -> None:
    """Ask for an answer on `reply` within `seconds`. Raises OSError; waits for nothing."""
    header = _HEADER.pack(duty, max(1, int(seconds * 1000)))
    socket.send_fds(channel, [header], [reply.fileno()], socket.MSG_DONTWAIT)


def receive_header(channel: socket.socket) -> tuple[int, float, socket.socket] | None:
    """The next duty's number, its seconds, and where the answer goes; None at the end.

    Raises Garbled and OSError.
    """
    header, fds, _, _ = socket.recv_fds(channel, _HEADER.size, 1)
    if not header:
        return None
    if len(header) != _HEADER.size or len(fds) != 1:
        raise Garbled(f"{len(header)} bytes and {len(fds)} descriptors")
    number, milliseconds = _HEADER.unpack(header)
    return number, milliseconds / 1000, socket.socket(fileno=fds[0])


def frame(outcome: Outcome, body: bytes) -> bytes:
    """An answer as it is sent."""
    return _FRAME.pack(outcome, len(body)) + body


def unframe(sent: bytes) -> tuple[Outcome, bytes]:
    """What `frame` made. Raises Garbled where the answer was cut off."""
    if len(sent) < _FRAME.size:
        raise Garbled("the answer was cut off")
    outcome, size = _FRAME.unpack_from(sent)
    body = sent[_FRAME.size :]
    if len(body) != size or outcome not in tuple(Outcome):
        raise Garbled("the answer was cut off")
    return Outcome(outcome), body


def read_to_end(stream: socket.socket, limit: int) -> bytes:
    """All that comes on `stream`. Raises Garbled beyond `limit` bytes, OSError, TimeoutError."""
    parts, size = list[bytes](), 0
    while part := stream.recv(1 << 18):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise Garbled(f"more than {limit} bytes")
    return b"".join(parts)
