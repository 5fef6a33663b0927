"""Read and write the user's terminal without a wait, and without a trace in its open file.

A terminal of another user, as after `su`, may not be opened again by its name. Then the front
opens it as /dev/tty, which needs no permission. Where that is another terminal, the front shares
the open file with the shell, which makes it block again at each prompt. So each read and each
write sets O_NONBLOCK itself, and takes it back. Source: tty(4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rootsd.wall.kernel.supervision import TerminalUse
from rootsd.wall.view.standard_files import is_in_pipeline

_CHUNK = 1 << 16


class UserTerminal(NamedTuple):
    """The user's terminal, opened again where that is possible. See `read_now`.

    It is two terminals if the standard files are.
    """

    keys: int
    screen: int
    is_shared: bool
    """Whether another program of a pipeline may use it, too."""

    @staticmethod
    def of(fds: Sequence[int]) -> UserTerminal:
        """Return the terminal of the standard files `fds`."""
        keys = fds[0]
        screen = next((fd for fd in fds if fd > 0), keys)
        return UserTerminal(_opened_again(keys), _opened_again(screen), is_in_pipeline())

    def first_use(self) -> TerminalUse:
        """Return how a program starts that has not asked for the keys."""
        is_free = not self.is_shared and self.is_foreground()
        return TerminalUse.FOREGROUND if is_free else TerminalUse.BACKGROUND

    def is_foreground(self) -> bool:
        """Return whether this process may read the keys without being stopped."""
        try:
            return os.tcgetpgrp(self.keys) == os.getpgrp()
        except OSError:  # a terminal of another session, where nobody is stopped
            return True


def read_now(fd: int) -> bytes:
    """Read what a terminal has now. Raises BlockingIOError if that is nothing, and OSError.

    It never waits, even if another process has made the shared open file block.
    """
    with _non_blocking(fd):
        return os.read(fd, _CHUNK)


def write_now(fd: int, data: bytearray) -> int:
    """Write what a terminal takes now, and return its length. Raises BlockingIOError, OSError."""
    with _non_blocking(fd):
        return os.write(fd, data)


@contextmanager
def _non_blocking(fd: int) -> Iterator[None]:
    """Set O_NONBLOCK for one call. In between, the programs that share `fd` have it as it was."""
    was_blocking = os.get_blocking(fd)
    if was_blocking:
        os.set_blocking(fd, False)
    try:
        yield
    finally:
        if was_blocking:
            os.set_blocking(fd, True)


def _opened_again(fd: int) -> int:
    """Open a terminal for this process alone, so that O_NONBLOCK is set for nobody else.

    Return a copy of `fd` if that is impossible.
    """
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    for name in (f"/proc/self/fd/{fd}", *(["/dev/tty"] if _controls_session(fd) else [])):
        with suppress(OSError):
            return os.open(name, flags)
    return os.dup(fd)


def _controls_session(fd: int) -> bool:
    """Return whether `fd` is the terminal that this process has as /dev/tty."""
    try:
        os.tcgetpgrp(fd)
    except OSError:
        return False
    return True
