"""A worker: the process that answers one question and ends.

Before it reads anything it gives up what it does not need, so that what a hostile repository makes
of a parser stays without effect: no file can be written, the memory and the time are bounded.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Collection

from rootsd.host.helper.duties import Reach, Terms
from rootsd.host.helper.protocol import (
    QUESTION_LIMIT,
    Outcome,
    frame,
    read_to_end,
    receive_header,
)
from rootsd.host.landlock import READ, Ruleset
from rootsd.host.landlock import version as landlock_version

_DESCRIPTORS = 256


def work(answer: Callable[[bytes], bytes], terms: Terms, orders: socket.socket) -> None:
    """Wait for the header that comes on `orders`, and answer the question to which it leads.
    Raises OSError where nobody listens."""
    _give_up(terms)
    with orders:
        order = receive_header(orders)
    if order is None:
        return  # the helper ended
    _, seconds, reply = order
    # Should the helper be gone by then, the kernel ends what goes on.
    signal.alarm(int(seconds) + 2)
    with reply:
        try:
            sent = frame(Outcome.ANSWERED, answer(read_to_end(reply, QUESTION_LIMIT)))
        except Exception as error:  # noqa: BLE001 - the asker is told, and this process ends
            sent = frame(Outcome.FAILED, type(error).__name__.encode("ascii", "replace"))
        reply.sendall(sent)
        # The asker need not wait for the end of this process, which takes a millisecond or two.
        reply.shutdown(socket.SHUT_WR)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process that is not among `kept`."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # that of the listing itself
                continue


def _give_up(terms: Terms) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, _DESCRIPTORS)
    if sys.platform == "linux":  # elsewhere it limits nothing, or counts what is merely reserved
        _limit(resource.RLIMIT_AS, _address_space() + terms.memory)
    if terms.reach is Reach.FILES and landlock_version():
        rules = Ruleset()
        rules.allow(b"/", READ)
        rules.restrict()


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
