"""Decide which standard files of the user a program behind the wall may have.

The user chooses them, as in `rootsd confine -- sort < list > sorted`, so they may lie outside the
view. Pipes, files, and devices are passed on as they are. A terminal is replaced by the program's
own one; see `terminal`. Everything that opens more than itself is refused:

* a folder, because openat(2) reads from there;
* a descriptor of open(2) with O_PATH, which is a place and not an open file;
* a socket, unless it is one end of a connected Unix stream, which is what programs use as a pipe.
  Others can be connected to something else: a network, or a path outside;
* a descriptor without a file, such as that of a process.

Where the wall has Landlock, a program cannot open its files again by `/proc/self/fd`, because they
are not below `/` inside. So a file that is open for reading stays read-only.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat

STANDARD = {0: "standard input", 1: "standard output", 2: "standard error"}
_STREAMS = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)


def terminals() -> tuple[int, ...]:
    """Return the standard files that are terminals."""
    return tuple(fd for fd in STANDARD if os.isatty(fd))


def is_in_pipeline() -> bool:
    """Return whether one of the files leads to another program, which may use the terminal."""
    modes = [os.fstat(fd).st_mode for fd in STANDARD]
    return any(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


def let_go(fds: tuple[int, ...]) -> None:
    """Replace descriptors by /dev/null, so that the other ends see the program's end of them."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in fds:
        os.dup2(nowhere, fd)
    os.close(nowhere)


def refused_kind(fd: int) -> str | None:
    """Return what the descriptor is if a program may not have it, or None."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        return "a folder, so the program could open files in it"
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH:
        return "a path and not an open file"
    if stat.S_ISSOCK(mode):
        return None if _is_stream(fd) else "a socket that could be connected to something else"
    if stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return None
    return "not a file, pipe, or terminal"


def _is_stream(fd: int) -> bool:
    """Return whether the socket is one end of a connected Unix stream, which stays connected."""
    with socket.socket(fileno=os.dup(fd)) as end:
        try:
            end.getpeername()
        except OSError:
            return False
        return end.family == socket.AF_UNIX and end.type in _STREAMS
