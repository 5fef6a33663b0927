"""Define the tasks of the helper, and the messages between daemon and helper.

To add a task, add a member to `HelperTask`, its `TaskSpec`, and a function `answer_…` with
`@typed_answer`, whose annotations are the types of the question and the answer. Each question runs
in its own process that exits with the answer. So the function may be killed at any instruction,
may leak, and need not be thread-safe. If it raises, the daemon gets no answer.

The channel is a stream socket pair. For each question, the daemon sends a header of fixed size
over it, together with one end of another socket pair. On that other pair, the daemon sends the
question up to end-of-file, and the worker sends the answer. So the helper itself never reads a
question and never waits for a reader, and the daemon recognizes an answer that was cut off. In the
other direction, the channel carries single bytes that say whether a helper is running.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, auto
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

from rootsd.core.typed_json import decode_typed, encode_typed

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class HelperTask(IntEnum):
    """The kinds of questions. The numbers go over the channel."""

    FOLDERS_IN_USE = 1
    FACTS = 2
    LAST_COMMIT = 3
    PROCESSES = 4
    WRITE_TERMINAL = 5
    TRACKING = 6
    RISKS = 7
    FOLDERS_OF_TOOLS = 8
    INSPECTIONS = 9


class WorkerAccess(Enum):
    """What a worker may access."""

    PROCESSES = auto()
    """Other processes and their terminals. Landlock would block both."""
    FILES = auto()
    """Files, for reading only. The worker confines itself with Landlock if the kernel has it."""


class TaskSpec(Struct, frozen=True):
    """How the helper runs a task.

    `function` is `MODULE:FUNCTION`. Only the helper loads it, when it starts. At most
    `max_workers` run at a time, and further questions wait. `memory` is the address space in bytes
    that a worker may use beyond the helper's own (limited on Linux only). With a `rehearsal`, the
    helper forks a worker ahead of each question, so that the caller does not wait 4 ms for a fork.
    The worker answers the rehearsal first, for nobody: the real answer then needs 1 ms less,
    because memory that a fork shares is copied when it is used. It must be quick and cannot hang.
    """

    function: str
    access: WorkerAccess
    max_workers: int
    memory: int = 256 << 20
    rehearsal: bytes = b""


TASK_SPECS: Mapping[HelperTask, TaskSpec] = {
    HelperTask.FOLDERS_IN_USE: TaskSpec(
        "rootsd.helper.folders:answer_folders_in_use",
        WorkerAccess.PROCESSES,
        max_workers=1,
        rehearsal=b"[]",
    ),
    HelperTask.FOLDERS_OF_TOOLS: TaskSpec(
        "rootsd.helper.folders:answer_folders_of_tools", WorkerAccess.PROCESSES, max_workers=1
    ),
    HelperTask.FACTS: TaskSpec(
        "rootsd.helper.project_facts:answer_facts", WorkerAccess.FILES, max_workers=2
    ),
    HelperTask.RISKS: TaskSpec(
        "rootsd.helper.project_facts:answer_risks", WorkerAccess.FILES, max_workers=2
    ),
    HelperTask.INSPECTIONS: TaskSpec(
        "rootsd.helper.project_facts:answer_inspections",
        WorkerAccess.FILES,
        max_workers=2,
        rehearsal=b'[["L2Rldi9udWxs", "git", [], ""]]',  # a project at /dev/null
    ),
    HelperTask.LAST_COMMIT: TaskSpec(
        "rootsd.helper.project_facts:answer_last_commit",
        WorkerAccess.FILES,
        max_workers=2,
        memory=96 << 20,
    ),
    HelperTask.TRACKING: TaskSpec(
        "rootsd.helper.project_facts:answer_tracking",
        WorkerAccess.FILES,
        max_workers=2,
        memory=96 << 20,
    ),
    HelperTask.PROCESSES: TaskSpec(
        "rootsd.helper.processes:answer_processes",
        WorkerAccess.PROCESSES,
        max_workers=2,
        rehearsal=b'{"callers": [1]}',
    ),
    HelperTask.WRITE_TERMINAL: TaskSpec(
        "rootsd.helper.terminals:answer_write_terminal", WorkerAccess.PROCESSES, max_workers=2
    ),
}


QUESTION_LIMIT = 16 << 20
ANSWER_LIMIT = 16 << 20
_HEADER = struct.Struct("!II")
_FRAME = struct.Struct("!BI")


class HelperProtocolError(Exception):
    """A message breaks this protocol."""


class HelperEvent(bytes, Enum):
    """What the supervisor reports to the daemon about the helper."""

    STARTED = b"+"
    LOST = b"-"


class AnswerStatus(IntEnum):
    """Whether the worker answered. If it failed, the body names the exception."""

    ANSWERED = 0
    FAILED = 1


def send_header(
    channel: socket.socket, task: HelperTask, seconds: float, reply: socket.socket
) -> None:
    """Request an answer on `reply` within `seconds`. Does not block. Raises OSError."""
    header = _HEADER.pack(task, max(1, int(seconds * 1000)))
    socket.send_fds(channel, [header], [reply.fileno()], socket.MSG_DONTWAIT)


def receive_header(channel: socket.socket) -> tuple[int, float, socket.socket] | None:
    """Return the task's number, its time limit in seconds, and the socket for the answer.

    Returns None at the end of the channel. Raises HelperProtocolError and OSError.
    """
    header, fds, _, _ = socket.recv_fds(channel, _HEADER.size, 1)
    if not header:
        return None
    if len(header) != _HEADER.size or len(fds) != 1:
        raise HelperProtocolError(f"{len(header)} bytes and {len(fds)} descriptors")
    number, milliseconds = _HEADER.unpack(header)
    return number, milliseconds / 1000, socket.socket(fileno=fds[0])


def typed_answer(function: Callable[[Question], Answer]) -> Callable[[bytes], bytes]:
    """Return a function that decodes the question, and encodes the answer."""

    hints: dict[str, Any] = get_type_hints(function)  # here, and not once for each worker

    @wraps(function)
    def answer(question: bytes) -> bytes:
        return encode_typed(function(decode_typed(question, hints["question"])))

    return answer


def frame(status: AnswerStatus, body: bytes) -> bytes:
    """Encode an answer."""
    return _FRAME.pack(status, len(body)) + body


def unframe(sent: bytes) -> tuple[AnswerStatus, bytes]:
    """Decode what `frame` encoded. Raises HelperProtocolError if the answer was cut off."""
    if len(sent) < _FRAME.size:
        raise HelperProtocolError("the answer was cut off")
    status, size = _FRAME.unpack_from(sent)
    body = sent[_FRAME.size :]
    if len(body) != size or status not in tuple(AnswerStatus):
        raise HelperProtocolError("the answer was cut off")
    return AnswerStatus(status), body


def read_to_end(stream: socket.socket, limit: int) -> bytes:
    """Read `stream` to its end.

    Raises HelperProtocolError beyond `limit` bytes, OSError, and TimeoutError.
    """
    parts, size = list[bytes](), 0
    while part := stream.recv(1 << 18):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise HelperProtocolError(f"more than {limit} bytes")
    return b"".join(parts)
