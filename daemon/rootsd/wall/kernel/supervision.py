"""Supervise a confined program: processes that wait for it, forward signals, and end everything.

Both engines start a program in the same way. The *waiter* is a child of the starter. It forwards
signals, and ends with the program's exit status. Its child is *init*, which reaps the program and
everything that the program started. Init's child is the program.

    starter (front or run proxy) -> waiter -> init -> program

Init is the leader of the program's session, and the program has its own process group. So
Ctrl-Z stops the program as in a shell: in an orphaned process group, the kernel would ignore it.

The engines differ in the way in which everything ends with a part, so they pass a function.
`rootsd.wall.kernel.cell` and `rootsd.wall.kernel.static_cell` use this module. Sources: pty(7),
credentials(7), pidfd_open(2), TIOCGPTPEER in ioctl_tty(2).
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, StrEnum
from typing import NamedTuple, NoReturn

from rootsd.core.wall import WAITER_NAME
from rootsd.wall.system_calls import ProcessOption, close_from, closing, set_process_option

STOPPED, WANTS_TERMINAL = b"S", b"T"
"""What init tells the front: the program has stopped, or it needs the foreground to go on."""
WARDEN_LOST = 125
"""The exit status of the waiter if the warden ended."""
FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT, signal.SIGTSTP,
)  # fmt: skip
_CONTINUE = signal.SIGURG
"""How the waiter forwards SIGCONT to init. Nothing else sends it.

A warden that lets everything go on sends SIGCONT to init. Init must then not continue a program
that the user has stopped.
"""
_MAX_MESSAGES = 64
_TIOCSPTLCK, _TIOCGPTPEER = 0x40045431, 0x5441

EndAll = Callable[[], None]
"""Ends a program and everything that it started."""


class Network(Enum):
    """The network that a program gets."""

    SHARED = "shared"
    PRIVATE = "private"


class Layer(StrEnum):
    """A layer of the wall that an option, or an attack's control, can leave out."""

    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
    MOUNT_CALLS = "seccomp against mounts"
    """Without SECCOMP, this is left out, too."""
    CAPABILITIES = "capabilities"


class TerminalUse(Enum):
    """Where a program runs in its terminal, as a job of a shell.

    In the background, the kernel stops it when it reads from the terminal. The front sends a value
    to init before it sends SIGCONT.
    """

    FOREGROUND = b"F"
    BACKGROUND = b"B"


class CellOptions(NamedTuple):
    """How to start a program.

    `terminal` is a socket that gets the master side of the program's terminal, and then a byte
    each time the program stops. The terminal replaces the `terminal_fds`. `folder` is the working
    directory, if it is visible.
    """

    network: Network = Network.SHARED
    without: frozenset[Layer] = frozenset()
    terminal: socket.socket | None = None
    terminal_fds: tuple[int, ...] = ()
    terminal_use: TerminalUse = TerminalUse.FOREGROUND
    folder: bytes | None = None
    home: bytes = b"/"


def become_waiter() -> None:
    """Name this process as a waiter. Call this before it forks init, which inherits the name."""
    with open("/proc/self/comm", "wb", buffering=0) as name:
        name.write(WAITER_NAME)


def wait(init: int, ends: tuple[int, ...], end_all: EndAll) -> NoReturn:
    """Be the waiter: end as init does, and before that if one of `ends` becomes readable."""
    for number in FORWARDED:
        signal.signal(
            number, lambda got, _: send_signal(init, _CONTINUE if got == signal.SIGCONT else got)
        )
    ended = os.pidfd_open(init)
    close_all_except(ended, *ends)
    poll = select.poll()
    for fd in (ended, *ends):
        poll.register(fd, select.POLLIN)
    ready = dict(poll.poll())
    if ended not in ready:
        send_signal(init, signal.SIGKILL)
    _, status = os.waitpid(init, 0)
    end_all()
    os._exit(exit_status(status) if ended in ready else WARDEN_LOST)


def fork_program(slave: int, options: CellOptions, end_all: EndAll) -> None:
    """Fork the program's process and return in it. Init waits until it ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if slave >= 0:
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    start_read, start_write = os.pipe2(os.O_CLOEXEC)
    program = os.fork()
    if program:
        os.close(start_read)
        _be_init(program, start_write, slave, options, end_all)
    os.close(start_write)
    os.read(start_read, 1)  # until it is in its process group, and in the foreground
    os.close(start_read)
    if slave >= 0:
        for fd in options.terminal_fds:
            os.dup2(slave, fd)
    if options.terminal is not None:
        options.terminal.close()
    for number in (*FORWARDED, signal.SIGPIPE, signal.SIGTTOU, signal.SIGTTIN):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _be_init(
    program: int, start: int, slave: int, options: CellOptions, end_all: EndAll
) -> NoReturn:
    """Reap everything, and end with the program, and all the rest with it."""
    set_process_option(ProcessOption.SET_DUMPABLE, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    for number in FORWARDED:
        signal.signal(number, lambda got, _: _signal_group(program, got))
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(_CONTINUE, lambda *_: _signal_group(program, signal.SIGCONT))
    os.setpgid(program, program)
    terminal = options.terminal
    if terminal is not None:
        _give_terminal(slave, program, options.terminal_use)
        signal.signal(_CONTINUE, lambda *_: _continue(program, slave, terminal))
    os.close(start)
    # With the terminal open here, the front sees no end of it while the program has it closed.
    close_all_except(slave, -1 if terminal is None else terminal.fileno())
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if pid != program:
            continue
        if os.WIFSTOPPED(status):
            if terminal is not None:
                is_denied = os.WSTOPSIG(status) in (signal.SIGTTIN, signal.SIGTTOU)
                needs = is_denied and os.tcgetpgrp(slave) != program
                with suppress(OSError):
                    terminal.send(WANTS_TERMINAL if needs else STOPPED)
            continue
        end_all()
        os._exit(exit_status(status))


def _continue(program: int, slave: int, terminal: socket.socket) -> None:
    """Continue the program where the front says: in the foreground of its terminal, or not."""
    with suppress(OSError):
        messages = terminal.recv(_MAX_MESSAGES, socket.MSG_DONTWAIT)
        if messages:
            _give_terminal(slave, program, TerminalUse(messages[-1:]))
    _signal_group(program, signal.SIGCONT)


def _give_terminal(slave: int, program: int, use: TerminalUse) -> None:
    """Make the program's group the one in the foreground, or that of init, which reads nothing."""
    os.tcsetpgrp(slave, program if use is TerminalUse.FOREGROUND else os.getpgrp())


def open_terminal(channel: socket.socket | None, multiplexer: str) -> int:
    """Make a terminal with `multiplexer` (ptmx), and send its master side to the front.

    Return -1 without a channel.
    """
    if channel is None:
        return -1
    flags = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC
    with closing(os.open(multiplexer, flags)) as master:
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        slave = fcntl.ioctl(master, _TIOCGPTPEER, flags)
        socket.send_fds(channel, [b"T"], [master])
    return slave


def is_readable(fd: int) -> bool:
    """Return whether a read of `fd` would not block."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def close_all_except(*kept: int) -> None:
    """Close all descriptors but these; the standard ones, too, so that pipes see their end."""
    first = 0
    for fd in sorted(each for each in kept if each >= 0):
        if first < fd:  # closerange(0, 0) closes all
            os.closerange(first, fd)
        first = fd + 1
    close_from(first)


def exit_status(status: int) -> int:
    """Return the status as shells count it."""
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, if it still is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _signal_group(leader: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
