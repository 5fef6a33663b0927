"""Start programs outside, and read what they print.

The module subprocess would take half of the relay's memory.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

from rootsd.wall.system_calls import closing

_CHUNK = 1 << 16


class OutsideProgram:
    """A program in a session of its own, without a terminal.

    `ended` is readable at its end. `standard` are its standard files. Raises OSError.
    """

    def __init__(
        self,
        command: tuple[bytes, ...],
        environment: Mapping[bytes, bytes],
        standard: tuple[int, int, int],
    ) -> None:
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(standard)]
        self.pid = os.posix_spawn(
            _found(command[0], environment), command, environment, file_actions=actions,
            setsid=True, setsigmask=(), setsigdef=(signal.SIGPIPE,),
        )  # fmt: skip
        self.ended = os.pidfd_open(self.pid)

    def wait(self) -> int:
        """Return the exit status, as shells count it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.ended)
        return status if status >= 0 else 128 - status

    def kill(self) -> int:
        """End the program, and what it has started and not put elsewhere. Return the status."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait()


def _found(program: bytes, environment: Mapping[bytes, bytes]) -> bytes:
    """Return the path of a program in the PATH of `environment`, not of this process."""
    for folder in environment.get(b"PATH", b"").split(b":") if b"/" not in program else ():
        path = folder + b"/" + program
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return program


class ProgramOutput:
    """What a program prints, which is at most `limit` bytes. Its input is `text`. Raises OSError.

    `status` is the exit status after `read`.
    """

    def __init__(
        self,
        command: tuple[bytes, ...],
        environment: Mapping[bytes, bytes],
        limit: int,
        text: bytes = b"",
    ) -> None:
        self._limit = limit
        self.status = -1
        self._pipe, printed = os.pipe2(os.O_CLOEXEC)
        with (
            closing(printed),
            closing(os.memfd_create("text")) as given,
            closing(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)) as nowhere,
        ):
            os.write(given, text)
            os.lseek(given, 0, os.SEEK_SET)
            try:
                self._program = OutsideProgram(command, environment, (given, printed, nowhere))
            except OSError:
                os.close(self._pipe)
                raise

    def read(self, end: float) -> bytes | None:
        """Return it, or None if it is too long or not complete at the moment `end`."""
        found = bytearray()
        is_complete = False
        with closing(self._pipe):
            while not is_complete and len(found) <= self._limit and _waits(self._pipe, end):
                data = os.read(self._pipe, _CHUNK)
                found += data
                is_complete = not data
        if is_complete:
            _waits(self._program.ended, end)
        self.status = self._program.kill()
        return bytes(found) if is_complete else None


def _waits(fd: int, end: float) -> bool:
    """Wait until something can be read, or until `end`. Return whether it can."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(end - time.monotonic(), 0.01) * 1000))
