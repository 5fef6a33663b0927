"""The supervisor restarts a helper with increasing delays, and ends with the daemon."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rootsd.helper.protocol import HelperEvent
from rootsd.helper.server import RESTART_DELAYS_S, supervise
from support.helper_process import ASKED, SECONDS, kept_helper, make_spec

NO_PAUSE = (0.0,)


@contextmanager
def kept(
    helper: Callable[[socket.socket], None], *delays_s: float
) -> Iterator[tuple[socket.socket, int]]:
    """Return the daemon's end of the channel, and the process that supervises `helper`."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        supervise(theirs, helper, delays_s)
        os._exit(0)
    theirs.close()
    ours.settimeout(SECONDS)
    with ours:
        yield ours, pid


def ends(_: socket.socket) -> None:
    """Run a helper that fails at once."""
    os._exit(3)


def listens(channel: socket.socket) -> None:
    """Run a helper that ends when its channel closes."""
    while channel.recv(1):
        pass


def heard(channel: socket.socket, count: int) -> bytes:
    events = b""
    while len(events) < count:
        events += channel.recv(count - len(events))
    return events


def test_a_helper_that_keeps_failing_is_restarted_repeatedly() -> None:
    with kept(ends, *NO_PAUSE) as (channel, pid):
        assert heard(channel, 20) == (HelperEvent.STARTED + HelperEvent.LOST) * 10
    assert os.waitpid(pid, 0)[1] == 0  # it ends with the channel


def test_the_delays_grow_and_end_with_the_daemon() -> None:
    with kept(ends, 0.0, 0.0, SECONDS) as (channel, pid):
        assert heard(channel, 6) == (HelperEvent.STARTED + HelperEvent.LOST) * 3
        channel.shutdown(socket.SHUT_WR)  # during the delay
        assert channel.recv(1) == b""
    assert os.waitpid(pid, 0)[1] == 0
    assert sorted(RESTART_DELAYS_S) == list(RESTART_DELAYS_S)


def test_it_ends_after_the_helper_has_ended() -> None:
    with kept(listens, *NO_PAUSE) as (channel, pid):
        assert heard(channel, 1) == HelperEvent.STARTED
        channel.shutdown(socket.SHUT_WR)
        assert channel.recv(1) == b""
    assert os.waitpid(pid, 0)[1] == 0


def test_signals_to_a_whole_service_end_neither_process() -> None:
    with kept_helper(make_spec()) as kept_one:
        assert kept_one.link.ask(ASKED, b"echo:", SECONDS) == b""
        helper = kept_one.helper_pid()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(helper, number)
            os.kill(kept_one.supervisor, number)
        assert kept_one.link.ask(ASKED, b"echo:still", SECONDS) == b"still"
        assert kept_one.helper_pid() == helper
