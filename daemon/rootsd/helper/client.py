"""Start the helper and ask it questions, from the daemon."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Protocol

from rootsd.core.errors import RootsdError
from rootsd.core.record import BadRecord
from rootsd.core.typed_json import decode_typed, encode_typed
from rootsd.helper.protocol import (
    ANSWER_LIMIT,
    Answer,
    AnswerStatus,
    HelperEvent,
    HelperProtocolError,
    HelperTask,
    read_to_end,
    send_header,
    unframe,
)
from rootsd.helper.server import REPLACE_SIGNAL, become_supervisor

# The helper closes each connection at its deadline. Only a helper that hangs takes longer than
# this.
_GRACE_S = 5.0
_EVENT_BYTES = 4096
_JUST_NOW_S = 1.0
_RESTARTING = "the helper process was lost, and another one is being started"


class NoAnswer(RootsdError):
    """The helper has no answer: the worker was late, was killed, or ran out of memory.

    A later attempt may succeed.
    """


class NoHelper(NoAnswer):
    """No helper process is running."""


class Helper(Protocol):
    """A process that answers questions for the confined daemon."""

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        """Wait up to `seconds` for the answer, and return it. Any thread may call this.

        Raises NoAnswer.
        """

    def problem(self) -> str | None:
        """Return why no helper is running, or None if one is."""

    def has_just_answered(self) -> bool:
        """Return whether an answer has come within the last second."""

    def close(self) -> None:
        """Stop the helper and its workers."""


def ask_typed(
    helper: Helper, task: HelperTask, question: object, seconds: float, kind: type[Answer]
) -> Answer:
    """Return the answer, a value of type `kind`. Raises NoAnswer."""
    answer = helper.ask(task, encode_typed(question), seconds)
    try:
        return decode_typed(answer, kind)
    except BadRecord as error:
        raise NoAnswer(f"the helper gave no valid answer: {error}") from error


class UnavailableHelper:
    """The stand-in for a helper that could not be started; `why` is the reason."""

    def __init__(self, why: str) -> None:
        self._problem = f"the helper process could not be started: {why}"

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:  # noqa: ARG002
        """Raise NoHelper."""
        raise NoHelper(self._problem)

    def problem(self) -> str | None:
        """Return why no helper is running."""
        return self._problem

    def has_just_answered(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing: no process runs."""


class HelperLink:
    """The channel to the helper, and the supervisor that replaces a helper that dies."""

    def __init__(self, channel: socket.socket, supervisor: int) -> None:
        """`supervisor` is the pid of a child of this process."""
        self._supervisor = supervisor
        self._channel = channel
        self._lock = threading.Lock()
        self._last_answer: float | None = None
        self._restarting: str | None = None  # why no helper is running for the moment
        self._end: str | None = None  # why no helper will run again

    def ask(self, task: HelperTask, question: bytes, seconds: float) -> bytes:
        """Wait up to `seconds` for the answer, and return it. Any thread may call this.

        Raises NoAnswer.
        """
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._send(task, seconds, theirs)
            outcome, body = self._answer(ours, question, seconds)
        self._last_answer = time.monotonic()
        if outcome is AnswerStatus.FAILED:
            raise NoAnswer(f"the helper could not answer: {body.decode('ascii', 'replace')}")
        return body

    def problem(self) -> str | None:
        """Return why no helper is running, or None if one is."""
        with self._lock:
            return self._problem()

    def has_just_answered(self) -> bool:
        """Return whether an answer has come within the last second."""
        answered = self._last_answer
        return answered is not None and time.monotonic() - answered < _JUST_NOW_S

    def close(self) -> None:
        """Stop the helper and its workers."""
        with self._lock:
            if self._end is None:
                with suppress(OSError):
                    self._channel.shutdown(socket.SHUT_WR)
                    self._channel.settimeout(_GRACE_S)
                    while self._channel.recv(_EVENT_BYTES):
                        pass  # the channel closes once helper and supervisor have exited
                self._lose("was stopped")

    def _problem(self) -> str | None:
        if self._end is None:
            self._read_events()
        return self._end or self._restarting

    def _read_events(self) -> None:
        try:
            while events := self._channel.recv(_EVENT_BYTES, socket.MSG_DONTWAIT):
                is_lost = events.endswith(HelperEvent.LOST)
                self._restarting = _RESTARTING if is_lost else None
            self._lose("ended")
        except BlockingIOError:
            pass
        except OSError:
            self._lose("ended")

    def _send(self, task: HelperTask, seconds: float, reply: socket.socket) -> None:
        with self._lock:
            if trouble := self._problem():
                raise NoHelper(trouble)
            try:
                send_header(self._channel, task, seconds, reply)
            except BlockingIOError:
                raise NoAnswer("the helper has too much to do") from None
            except OSError:
                self._lose("ended")
                raise NoHelper(self._end or "") from None

    def _answer(
        self, ours: socket.socket, question: bytes, seconds: float
    ) -> tuple[AnswerStatus, bytes]:
        try:
            ours.settimeout(seconds + _GRACE_S)
            ours.sendall(question)
            ours.shutdown(socket.SHUT_WR)
            return unframe(read_to_end(ours, ANSWER_LIMIT))
        except TimeoutError as error:
            with self._lock:
                self._replace()
            raise NoAnswer("the helper hung, and another one is being started") from error
        except (HelperProtocolError, OSError) as error:
            if trouble := self.problem():
                raise NoHelper(trouble) from error
            raise NoAnswer(f"the helper had no answer within {seconds:g} s") from error

    def _replace(self) -> None:
        """Ask the supervisor to replace the helper, which hangs. The caller holds the lock."""
        if self._end is None:
            if os.waitid(os.P_PID, self._supervisor, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._lose("hung")  # the supervisor has exited, so nothing starts another one
            else:
                os.kill(self._supervisor, REPLACE_SIGNAL)

    def _lose(self, what_happened: str) -> None:
        """Stop using the helper for good. The caller holds the lock."""
        if self._end is not None:
            return
        self._end = f"the helper process {what_happened}"
        with suppress(ProcessLookupError):
            os.kill(self._supervisor, signal.SIGKILL)
        self._channel.close()
        with suppress(ChildProcessError):
            os.waitpid(self._supervisor, 0)


def start_helper() -> Helper:
    """Fork the supervisor of a helper. Return an UnavailableHelper if the fork fails.

    Call this before the process starts a second thread, takes a lock that the helper must not
    hold, or confines itself.
    """
    ours, theirs = socket.socketpair()
    try:
        pid = os.fork()
    except OSError as error:
        ours.close()
        theirs.close()
        return UnavailableHelper(error.strerror or str(error))
    if not pid:
        become_supervisor(theirs)
    theirs.close()
    return HelperLink(ours, pid)
