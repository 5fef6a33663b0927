"""Connect the user's terminal to the program's own terminal, and wait for the program.

A confined program never gets the user's terminal: it could inject keys there, or read what other
programs type. It gets a terminal in its own devpts, and the front copies bytes in both directions.
The front puts the user's terminal in raw mode, so Ctrl-C and Ctrl-Z reach the program's terminal,
which turns them into signals inside.

If the program stops (Ctrl-Z), the front restores the user's terminal and stops, too. When the
shell continues the front, it continues the program. The front never blocks on a write: a program
that does not read must not keep its own output from the user. Sources: termios(3), tty_ioctl(4),
and "job control" in credentials(7).
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rootsd.confine.supervision import STOPPED

_STDIN, _STDOUT = 0, 1
_CHUNK = 1 << 16
_MAX_UNSENT = 1 << 18
_WINDOW_SIZE = bytes(8)
_FORWARDED = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def wait_for(waiter: int) -> int:
    """Wait for a program without a terminal, forward signals to it, and return its status."""
    for number in _FORWARDED:
        signal.signal(number, lambda got, _: _signal(waiter, got))
    _, status = os.waitpid(waiter, 0)
    return _exit_status(status)


class TerminalFront:
    """The front of one program with a terminal. Call `run` once."""

    def __init__(self, channel: socket.socket, waiter: int) -> None:
        self._channel = channel
        self._waiter = waiter
        self._master = -1
        self._saved: list[object] = []
        self._to_program = bytearray()
        self._to_user = bytearray()
        self._is_open = True

    def run(self) -> int:
        """Copy until the program ends, and return its exit status."""
        for number in _FORWARDED:
            signal.signal(number, lambda got, _: _signal(self._waiter, got))
        _, fds, _, _ = socket.recv_fds(self._channel, 1, 1)
        if not fds:  # it failed to start; the caller has the reason
            return wait_for(self._waiter)
        self._master = fds[0]
        os.set_blocking(self._master, False)
        signal.signal(signal.SIGWINCH, lambda *_: self._resize())
        self._resize()
        with self._raw_terminal(), _non_blocking(_STDOUT):
            while self._is_open:
                self._step()
            self._drain()
        os.close(self._master)
        _, status = os.waitpid(self._waiter, 0)
        return _exit_status(status)

    def _step(self) -> None:
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        wanted = select.POLLIN if len(self._to_user) < _MAX_UNSENT else 0
        poll.register(self._master, wanted | (select.POLLOUT if self._to_program else 0))
        if len(self._to_program) < _MAX_UNSENT and self._saved:
            poll.register(_STDIN, select.POLLIN)
        if self._to_user:
            poll.register(_STDOUT, select.POLLOUT)
        ready = dict(poll.poll())
        if self._channel.fileno() in ready:
            self._take_event()
        if _STDIN in ready:
            self._read_user()
        if self._master in ready:
            self._read_program()
        self._write()

    def _take_event(self) -> None:
        event = self._channel.recv(1)
        if event == STOPPED:
            self._stop()
        elif not event:  # init has ended, and with it all programs
            self._is_open = False

    def _read_user(self) -> None:
        try:
            data = os.read(_STDIN, _CHUNK)
        except OSError:  # EIO: the user's terminal is gone
            data = b""
        if not data:
            _signal(self._waiter, signal.SIGHUP)
            self._saved = []
            return
        self._to_program += data

    def _read_program(self) -> None:
        with suppress(OSError):  # EIO: nobody has the program's terminal open now
            self._to_user += os.read(self._master, _CHUNK)

    def _write(self) -> None:
        with suppress(BlockingIOError):
            while self._to_user:
                del self._to_user[: os.write(_STDOUT, self._to_user)]
        with suppress(OSError):
            while self._to_program:
                del self._to_program[: os.write(self._master, self._to_program)]

    def _drain(self) -> None:
        """Copy what the program wrote before its end."""
        with suppress(OSError):
            while data := os.read(self._master, _CHUNK):
                self._to_user += data
        os.set_blocking(_STDOUT, True)
        with suppress(OSError):
            while self._to_user:
                del self._to_user[: os.write(_STDOUT, self._to_user)]

    def _stop(self) -> None:
        """Stop like the program did, and continue it when the shell continues this process."""
        self._write()
        self._restore()
        os.set_blocking(_STDOUT, True)
        os.kill(os.getpid(), signal.SIGTSTP)
        # The shell has continued this process, or the kernel ignored the signal.
        os.set_blocking(_STDOUT, False)
        tty.setraw(_STDIN, termios.TCSADRAIN)  # keep what was typed already
        self._resize()
        _signal(self._waiter, signal.SIGCONT)

    def _resize(self) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(_STDIN, termios.TIOCGWINSZ, _WINDOW_SIZE)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    @contextmanager
    def _raw_terminal(self) -> Iterator[None]:
        self._saved = list(termios.tcgetattr(_STDIN))
        attributes = self._saved
        tty.setraw(_STDIN, termios.TCSADRAIN)  # keep what was typed already
        try:
            yield
        finally:
            self._saved = attributes
            with suppress(termios.error):
                self._restore()

    def _restore(self) -> None:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]


@contextmanager
def _non_blocking(fd: int) -> Iterator[None]:
    """Set O_NONBLOCK for the block. The open file may be shared with the shell."""
    was_blocking = os.get_blocking(fd)
    os.set_blocking(fd, False)
    try:
        yield
    finally:
        os.set_blocking(fd, was_blocking)


def _exit_status(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
