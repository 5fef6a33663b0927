"""Ask the helper from the daemon, and start it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from typing import Protocol

from rootsd.core.errors import RootsdError
from rootsd.helper.protocol import (
    ANSWER_LIMIT,
    AnswerStatus,
    HelperEvent,
    HelperProtocolError,
    HelperTask,
    read_to_end,
    send_header,
    unframe,
)
from rootsd.helper.server import REPLACE_SIGNAL, become_supervisor

# Beyond the deadline, by which it closes every connection: only a helper that hangs takes longer.
_GRACE_S = 5.0
_SIGNS = 4096
_AWAY = "the helper process was lost, and another one is being started"


class NoAnswer(RootsdError):
    """The helper does not know: late, killed, out of memory; another time it may."""


class NoHelper(NoAnswer):
    """There is no helper at the moment."""


class Helper(Protocol):
    """Whoever answers for the daemon what the daemon may not look at itself."""

    def ask(self, duty: HelperTask, question: bytes, seconds: float) -> bytes:
        """The answer, within `seconds`; waits for it, in any thread. Raises NoAnswer."""

    def trouble(self) -> str | None:
        """Why there is no helper; None where there is."""

    def close(self) -> None:
        """End the helper, and with it its workers."""


class UnavailableHelper:
    """No helper at all; `why` says what kept it from being started."""

    def __init__(self, why: str) -> None:
        self._trouble = f"the helper process could not be started: {why}"

    def ask(self, duty: HelperTask, question: bytes, seconds: float) -> bytes:  # noqa: ARG002
        """Raises NoHelper."""
        raise NoHelper(self._trouble)

    def trouble(self) -> str | None:
        """Why there is none."""
        return self._trouble

    def close(self) -> None:
        """Nothing is to be ended."""


class HelperLink:
    """The channel to a helper, and the keeper that starts another where one is lost."""

    def __init__(self, channel: socket.socket, keeper: int) -> None:
        """`keeper` is a child of this process."""
        self._keeper = keeper
        self._channel = channel
        self._lock = threading.Lock()
        self._away: str | None = None  # why there is none at the moment
        self._end: str | None = None  # why there will be none any more

    def ask(self, duty: HelperTask, question: bytes, seconds: float) -> bytes:
        """The answer, within `seconds`; waits for it, in any thread. Raises NoAnswer."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._hand_over(duty, seconds, theirs)
            outcome, body = self._answer(ours, question, seconds)
        if outcome is AnswerStatus.FAILED:
            raise NoAnswer(f"the helper could not answer: {body.decode('ascii', 'replace')}")
        return body

    def trouble(self) -> str | None:
        """Why there is no helper; None where there is."""
        with self._lock:
            return self._trouble()

    def close(self) -> None:
        """End the helper, and with it its workers."""
        with self._lock:
            if self._end is None:
                with suppress(OSError):
                    self._channel.shutdown(socket.SHUT_WR)
                    self._channel.settimeout(_GRACE_S)
                    while self._channel.recv(_SIGNS):
                        pass  # it ends when both have
                self._lose("was ended")

    def _trouble(self) -> str | None:
        if self._end is None:
            self._heed_signs()
        return self._end or self._away

    def _heed_signs(self) -> None:
        try:
            while signs := self._channel.recv(_SIGNS, socket.MSG_DONTWAIT):
                is_away = signs.endswith(HelperEvent.LOST)
                self._away = _AWAY if is_away else None
            self._lose("ended")
        except BlockingIOError:
            pass
        except OSError:
            self._lose("ended")

    def _hand_over(self, duty: HelperTask, seconds: float, reply: socket.socket) -> None:
        with self._lock:
            if trouble := self._trouble():
                raise NoHelper(trouble)
            try:
                send_header(self._channel, duty, seconds, reply)
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
            raise NoAnswer("the helper hung and is replaced") from error
        except (HelperProtocolError, OSError) as error:
            if trouble := self.trouble():
                raise NoHelper(trouble) from error
            raise NoAnswer(f"the helper had no answer within {seconds:g} s") from error

    def _replace(self) -> None:
        """It takes no question any more; under the lock."""
        if self._end is None:
            if os.waitid(os.P_PID, self._keeper, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._lose("hung")  # and there is nobody to start another
            else:
                os.kill(self._keeper, REPLACE_SIGNAL)

    def _lose(self, what_happened: str) -> None:
        """Do without from now on; under the lock."""
        if self._end is not None:
            return
        self._end = f"the helper process {what_happened}"
        with suppress(ProcessLookupError):
            os.kill(self._keeper, signal.SIGKILL)
        self._channel.close()
        with suppress(ChildProcessError):
            os.waitpid(self._keeper, 0)


def start_helper() -> Helper:
    """Fork the keeper of a helper; `Absent` where that fails.

    To be called before there is a second thread, a lock that the helper must not keep, or a
    confinement that it must not share.
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
