"""Define the helper's tasks and the messages between daemon and helper.

What the helper can be asked: a module for each question, and the terms a worker answers on.

To add one: a member of `Duty`, its `Terms`, and a module with a function `answer(bytes) -> bytes`.
It runs in a process of its own that ends with the answer, so it may be killed at any instruction,
may leak, and need not be safe in threads. Whatever it raises is an answer that does not come.

What passes between daemon and helper.

On the channel, a stream socket pair: for each question a header of fixed size, and with it one end
of another socket pair. On that: the question up to its end, then the answer, and no more. So the
helper never reads a question nor waits for a reader, and an answer that is cut off shows as such.
The other way the channel carries single bytes: whether there is a helper at the moment.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class HelperTask(IntEnum):
    """The questions; the numbers go over the channel."""

    AT_WORK = 1
    FACTS = 2
    HISTORY = 3
    LINEAGES = 4
    SHOWING = 5


class WorkerAccess(Enum):
    """What a worker may get at."""

    PROCESSES = auto()
    """What other processes are and do, and their terminals. Landlock would take both."""
    FILES = auto()
    """Files, to read them, and nothing else: confined as the daemon is, where the kernel can."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """How the helper answers a question.

    `function` is `MODULE:FUNCTION`. Only the helper loads it, at its start.

    `at_once` workers at most, the other questions wait; `memory` in bytes of address space beyond
    what the helper itself has, where the system can limit it (Linux). Where the answer is
    `awaited`, a worker stands ready for the next question: to make one takes 4 ms.
    """

    function: str
    reach: WorkerAccess
    at_once: int
    memory: int = 256 << 20
    awaited: bool = False


TASK_SPECS: Mapping[HelperTask, TaskSpec] = {
    HelperTask.AT_WORK: TaskSpec(
        "rootsd.helper.questions:answer_folders_in_use",
        WorkerAccess.PROCESSES,
        at_once=1,
        awaited=True,
    ),
    HelperTask.FACTS: TaskSpec(
        "rootsd.helper.project_facts:answer_facts", WorkerAccess.FILES, at_once=2
    ),
    HelperTask.HISTORY: TaskSpec(
        "rootsd.helper.project_facts:answer_last_commit",
        WorkerAccess.FILES,
        at_once=2,
        memory=96 << 20,
    ),
    HelperTask.LINEAGES: TaskSpec(
        "rootsd.helper.questions:answer_processes", WorkerAccess.PROCESSES, at_once=2, awaited=True
    ),
    HelperTask.SHOWING: TaskSpec(
        "rootsd.helper.questions:answer_write_terminal", WorkerAccess.PROCESSES, at_once=2
    ),
}


QUESTION_LIMIT = 16 << 20
ANSWER_LIMIT = 16 << 20
_HEADER = struct.Struct("!II")
_FRAME = struct.Struct("!BI")


class HelperProtocolError(Exception):
    """What came is not what this protocol says."""


class HelperEvent(bytes, Enum):
    """What the keeper tells the daemon of its helper."""

    STARTED = b"+"
    LOST = b"-"


class AnswerStatus(IntEnum):
    """Whether a worker could answer; else the body is the name of what it raised."""

    ANSWERED = 0
    FAILED = 1


def send_header(
    channel: socket.socket, duty: HelperTask, seconds: float, reply: socket.socket
) -> None:
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
        raise HelperProtocolError(f"{len(header)} bytes and {len(fds)} descriptors")
    number, milliseconds = _HEADER.unpack(header)
    return number, milliseconds / 1000, socket.socket(fileno=fds[0])


def frame(outcome: AnswerStatus, body: bytes) -> bytes:
    """An answer as it is sent."""
    return _FRAME.pack(outcome, len(body)) + body


def unframe(sent: bytes) -> tuple[AnswerStatus, bytes]:
    """What `frame` made. Raises Garbled where the answer was cut off."""
    if len(sent) < _FRAME.size:
        raise HelperProtocolError("the answer was cut off")
    outcome, size = _FRAME.unpack_from(sent)
    body = sent[_FRAME.size :]
    if len(body) != size or outcome not in tuple(AnswerStatus):
        raise HelperProtocolError("the answer was cut off")
    return AnswerStatus(outcome), body


def read_to_end(stream: socket.socket, limit: int) -> bytes:
    """All that comes on `stream`. Raises Garbled beyond `limit` bytes, OSError, TimeoutError."""
    parts, size = list[bytes](), 0
    while part := stream.recv(1 << 18):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise HelperProtocolError(f"more than {limit} bytes")
    return b"".join(parts)
