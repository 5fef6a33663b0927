"""The work of a helper's worker in tests: it does what the question says, including failures."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable


def answer(question: bytes) -> bytes:
    """Perform a question: a verb, a colon, and an argument."""
    verb, _, rest = question.partition(b":")
    return _VERBS[verb](rest)


def _hang(_: bytes) -> bytes:
    """Hang like C code that waits on a FIFO: ignore every signal that can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    select.select([], [], [])
    raise AssertionError


def _tell_and_hang(path: bytes) -> bytes:
    """Write the pid to the FIFO `path`, then hang."""
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b"%d\n" % os.getpid())
    os.close(fd)
    return _hang(b"")


def _die(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def _orphan(_: bytes) -> bytes:
    """Kill the helper, then end without an answer."""
    os.kill(os.getppid(), signal.SIGKILL)
    return _die(b"")


def _eat(size: bytes) -> bytes:
    return b"%d" % len(bytearray(int(size)))


def _write(path: bytes) -> bytes:
    with open(path, "wb", buffering=0) as file:
        file.write(b"planted")
    return b"written"


def _start(program: bytes) -> bytes:
    os.execv(program, [program])  # noqa: S606 - a program that tests name
    raise AssertionError


def _count_descriptors(_: bytes) -> bytes:
    """Count the descriptors other than the three standard ones, the reply, the lifeline, and the
    listing.
    """
    return b"%d" % (len(os.listdir("/dev/fd")) - 6)


def _connect(port: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", int(port)), 10):
        return b"connected"


_VERBS: dict[bytes, Callable[[bytes], bytes]] = {
    b"connect": _connect,
    b"count": _count_descriptors,
    b"die": _die,
    b"eat": _eat,
    b"echo": lambda rest: rest,
    b"hang": _hang,
    b"orphan": _orphan,
    b"pid": lambda _: b"%d" % os.getpid(),
    b"read": lambda path: open(path, "rb").read(),  # noqa: SIM115 - the process ends here
    b"start": _start,
    b"tell": _tell_and_hang,
    b"write": _write,
}
