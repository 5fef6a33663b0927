"""Start the person's own programs outside, from the relay for git.

The module subprocess would take half of the relay's memory.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

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
            setsid=True, setsigdef=(signal.SIGPIPE,),
        )  # fmt: skip
        self.ended = os.pidfd_open(self.pid)

    def wait(self) -> int:
        """Return the exit status, as shells count it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.ended)
        return status if status >= 0 else 128 - status

    def kill(self) -> None:
        """End the program, and what it has started and not put elsewhere."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()


def _found(program: bytes, environment: Mapping[bytes, bytes]) -> bytes:
    """Return the path of a program in the PATH of `environment`, not of this process."""
    for folder in environment.get(b"PATH", b"").split(b":") if b"/" not in program else ():
        path = folder + b"/" + program
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return program


class ProgramOutput:
    """What a program prints, which is at most `limit` bytes. Raises OSError."""

    def __init__(
        self, command: tuple[bytes, ...], environment: Mapping[bytes, bytes], limit: int
    ) -> None:
        self._limit = limit
        self._pipe, printed = os.pipe2(os.O_CLOEXEC)
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._program = OutsideProgram(command, environment, (nowhere, printed, nowhere))
        finally:
            os.close(printed)
            os.close(nowhere)

    def read(self, end: float) -> bytes | None:
        """Return it, or None if it is too long or not complete at the moment `end`."""
        found = bytearray()
        is_complete = False
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while not is_complete and len(found) <= self._limit:
            if not poll.poll(max(end - time.monotonic(), 0.01) * 1000):
                break
            data = os.read(self._pipe, _CHUNK)
            found += data
            is_complete = not data
        os.close(self._pipe)
        self._program.kill()
        return bytes(found) if is_complete else None
