"""Start the relay, with which git inside fetches from and pushes to the origins of its roots.

The relay is a process outside, a child of the wall's owner. `relay_loop` is what it does. The
owner shows its questions on the person's terminal, and prints at the end what was refused.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import text_of
from rootsd.core.wall import PushPolicy
from rootsd.net.unix_socket import listen_for_requests
from rootsd.wall.kernel.supervision import close_all_except
from rootsd.wall.session.relay_questions import MAX_PACKET, QUESTION, Asked, RelayQuestions
from rootsd.wall.system_calls import ProcessOption, set_process_option
from rootsd.wall.view.standard_files import let_go

_SOCKET = b"/push"
_NAME = b"rootsd-push"
_MAX_WAITING = 64


class PushRelay(NamedTuple):
    """A running relay, as its owner sees it. The warden gets the `listener`."""

    pid: int
    channel: socket.socket
    listener: socket.socket
    entry: ViewEntry

    def end(self) -> list[str]:
        """End the relay, and return sentences about what it refused."""
        found = bytearray()
        with suppress(OSError):
            self.channel.settimeout(None)
            self.channel.shutdown(socket.SHUT_WR)
            while data := self.channel.recv(MAX_PACKET):
                if not data.startswith(QUESTION):
                    found += data
        for each in (self.channel, self.listener):
            each.close()
        return text_of(bytes(found)).splitlines()

    def questions(self) -> RelayQuestions:
        """Return the questions for the person."""
        return RelayQuestions(self.channel)


def socket_inside() -> bytes:
    """Return where programs find the relay."""
    return b"/run/user/%d/%s" % (os.geteuid(), _NAME)


def start_relay(
    folder: bytes,
    record: bytes,
    push: PushPolicy,
    asked: Asked,
    writable: Iterable[bytes] = (),
) -> PushRelay:
    """Fork a relay. Its socket is in the private `folder` of the wall. Raises OSError.

    `record` is the file with the known origins. `writable` are the folders that programs may write
    and that are no roots.
    """
    place = folder + _SOCKET
    clients = listen_for_requests(place, _MAX_WAITING)
    ours, owner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener, news = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            gc.freeze()  # else, a search for garbage takes a copy of all that the owner has loaded
            _leave_owner(clients, owner, news)
            # Not earlier, because the owner needs none of it, and must start fast.
            from rootsd.wall.session.relay_loop import Relay  # noqa: PLC0415

            Relay(clients, owner, news, record, push, asked, frozenset(writable)).serve()
        finally:
            os._exit(0)
    for each in (clients, owner, news):
        each.close()
    entry = ViewEntry(socket_inside(), ViewEntryKind.SOCKET, "git push and fetch", place)
    return PushRelay(pid, ours, listener, entry)


def _leave_owner(*channels: socket.socket) -> None:
    """Keep only the channels of the relay, and end with the owner."""
    os.chdir("/")
    # A session of its own: no key of the terminal reaches it, and ssh finds no terminal to ask on.
    os.setsid()
    let_go((0, 1, 2))
    close_all_except(0, 1, 2, *(each.fileno() for each in channels))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    set_process_option(ProcessOption.PARENT_DEATH_SIGNAL, signal.SIGTERM)
