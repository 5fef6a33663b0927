"""Use the standard files without buffers and without blocking.

Other processes may share them. So this module does not set O_NONBLOCK on them.

Standard input and output carry the protocol. Standard error carries messages for people, often to
a log that is full, or that nobody reads any more. A session is worth more than a message. So
`LossyErrors` loses the message.
"""

from __future__ import annotations

import io
import os
import select
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STDIN, STDOUT, STDERR = 0, 1, 2
_CHUNK = 256 * 1024


class LossyErrors(io.TextIOBase):
    """A `sys.stderr` that never raises and never blocks. What cannot be written now is lost.

    Tracebacks and warnings of the interpreter pass through it, too. It keeps no descriptor, which
    a forked process would hold open for the readers of standard error.
    """

    def write(self, text: str, /) -> int:
        """Write what fits now. Return the number of bytes."""
        try:
            return _write_now(STDERR, text.encode("utf-8", "backslashreplace"))
        except OSError:
            return 0

    def fileno(self) -> int:
        """Return the descriptor of standard error."""
        return STDERR

    def isatty(self) -> bool:
        """Return whether standard error is a terminal."""
        return os.isatty(STDERR)

    def writable(self) -> bool:
        """Return true."""
        return True


def install_lossy_errors() -> None:
    """Lose messages on standard error from now on, rather than fail or wait."""
    sys.stderr = LossyErrors()


def fill_closed_files() -> None:
    """Open something for each standard file that is closed.

    Otherwise the next file or socket of this process would get that number, and a server would
    inherit it. A closed output becomes a pipe that nobody reads, so that it is still as closed.
    """
    for fd in (STDIN, STDERR):
        if not _is_open(fd):
            _move(os.open(os.devnull, os.O_RDWR), fd)
    if not _is_open(STDOUT):
        reader, writer = os.pipe()
        _move(writer, STDOUT)
        if reader != STDOUT:
            os.close(reader)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _move(fd: int, target: int) -> None:
    if fd == target:
        os.set_inheritable(fd, True)  # noqa: FBT003 - it takes no keyword
        return
    os.dup2(fd, target)
    os.close(fd)


def _write_now(fd: int, data: bytes) -> int:
    """Write what fits without waiting. Return the number of bytes. Raises OSError."""
    kind = stat.S_IFMT(os.fstat(fd).st_mode)
    if kind == stat.S_IFSOCK:
        return _send_now(fd, data)
    if kind == stat.S_IFREG:
        return os.write(fd, data)
    try:
        own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:  # no /proc, or a file of another user
        return _write_if_ready(fd, data)
    try:
        return os.write(own, data)
    finally:
        os.close(own)


def _send_now(fd: int, data: bytes) -> int:
    import socket  # noqa: PLC0415 - loads much, and most files are no sockets

    with socket.socket(fileno=os.dup(fd)) as end:
        end.settimeout(None)  # the other descriptors of the socket stay as they are
        return end.send(data, socket.MSG_DONTWAIT)


def read_stdin() -> bytes:
    """Return the next chunk, after a wait if necessary; b"" at the end or without standard
    input.
    """
    try:
        return os.read(STDIN, _CHUNK)
    except OSError:  # a closed terminal, or no standard input at all
        return b""


def make_stdout_writer() -> Callable[[bytes | bytearray], int]:
    """Return a function that writes what fits without waiting, and returns the number of bytes.

    It raises BrokenPipeError if nobody reads any more.
    """
    kind = 0
    try:
        kind = stat.S_IFMT(os.fstat(STDOUT).st_mode)
        if kind == stat.S_IFIFO:
            # A second open (proc(5)) gives a description of our own, which may be non-blocking.
            path = f"/proc/self/fd/{STDOUT}"
            own = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return lambda data: _unless_full(lambda: os.write(own, data))
    except OSError:  # no /proc, or no standard output at all
        pass
    if kind == stat.S_IFSOCK:  # Node gives sockets to the servers that it starts
        import socket  # noqa: PLC0415 - loads much, and `check` needs none

        end = socket.socket(fileno=os.dup(STDOUT))
        end.settimeout(None)
        return lambda data: _unless_full(lambda: end.send(data, socket.MSG_DONTWAIT))
    return lambda data: _unless_full(lambda: _write_if_ready(STDOUT, data))


def _unless_full(write: Callable[[], int]) -> int:
    try:
        return write()
    except BlockingIOError:
        return 0
    except OSError as error:  # a reset socket, a hung-up terminal: nobody reads any more
        raise BrokenPipeError(error.errno, error.strerror) from error


def _write_if_ready(fd: int, data: bytes | bytearray) -> int:
    """Write at most PIPE_BUF bytes, which never blocks once there is room at all."""
    ready = select.poll()
    ready.register(fd, select.POLLOUT)
    return os.write(fd, data[: select.PIPE_BUF]) if ready.poll(0) else 0
