"""Keeps a helper at work: where one is lost another is started, ever later if that goes on.

A process of its own between daemon and helper, since what a confined daemon starts shares its
confinement. It holds the channel, too, so what waits there is answered by the next helper.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from rootsd.host.helper.protocol import Sign
from rootsd.host.helper.server import serve
from rootsd.host.helper.worker import close_all_but

HUNG = signal.SIGUSR1
"""Sent by the daemon: the helper answers no more, and has to be replaced."""

# Seconds before another one is started; one that lived for the longest of them begins anew.
PAUSES_S = (0.0, 0.2, 1.0, 5.0, 30.0)


def keep(
    channel: socket.socket,
    helper: Callable[[socket.socket], None] = serve,
    pauses_s: Sequence[float] = PAUSES_S,
) -> None:
    """Have `helper` serve the channel, each time in a new process, until its other end is closed.

    To be called in a process of its own with one thread. The daemon is told by `Sign`s.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, HUNG):
        # Sent to all of the terminal's or the service's processes; the daemon decides.
        signal.signal(number, signal.SIG_IGN)
    lost = 0
    while not _is_over(channel, pauses_s[min(lost, len(pauses_s)) - 1] if lost else 0.0):
        begin = time.monotonic()
        pid = os.fork()
        if not pid:
            _be(helper, channel)
        _say(channel, Sign.STARTED)
        if _ended_in_order(pid):
            return
        _say(channel, Sign.LOST)
        lost = 1 if time.monotonic() - begin >= pauses_s[-1] else lost + 1


def _ended_in_order(pid: int) -> bool:
    """Wait for the helper's end, or bring it about where the daemon says so."""

    def kill(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    signal.signal(HUNG, kill)
    _, status = os.waitpid(pid, 0)
    signal.signal(HUNG, signal.SIG_IGN)
    return status == 0


def be_keeper(channel: socket.socket) -> NoReturn:
    """Turn this process, fresh from fork(2), into the keeper; it never returns."""
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        # The rest is the daemon's: locks it will let go of, a pipe that says it is ready.
        close_all_but({0, 1, 2, channel.fileno()})
        keep(channel)
        status = 0
    except BaseException:  # noqa: BLE001 - nothing of the daemon's may run in this process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _be(helper: Callable[[socket.socket], None], channel: socket.socket) -> NoReturn:
    status = 1
    try:
        helper(channel)
        status = 0
    except BaseException:  # noqa: BLE001 - nothing of the keeper's may run in this process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _is_over(channel: socket.socket, pause_s: float) -> bool:
    """Whether the daemon has gone; waits that long to see it."""
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP if sys.platform == "linux" else 0)
    return bool(poll.poll(int(pause_s * 1000)))


def _say(channel: socket.socket, sign: Sign) -> None:
    with suppress(OSError):  # nobody listens any more, or nobody has for a long time
        channel.send(sign, socket.MSG_DONTWAIT)
