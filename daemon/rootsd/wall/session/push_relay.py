"""Start the relay, with which git inside fetches from and pushes to the origins of its roots.

The relay is a process outside, a child of the wall's owner. `relay_loop` is what it does. The
owner shows its questions on the person's terminal, and prints at the end what was refused.

A process takes 4 MB, and most programs never push. So the owner itself finds the origins of the
first roots, and starts the process when something else is asked of the relay.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from rootsd.core.paths import text_of
from rootsd.core.wall import PushPolicy
from rootsd.net.unix_socket import listen_for_requests
from rootsd.wall.kernel.supervision import close_all_except
from rootsd.wall.session.relay_questions import MAX_PACKET, QUESTION, Asked, RelayQuestions
from rootsd.wall.system_calls import ProcessOption, set_process_option
from rootsd.wall.view.standard_files import let_go

if TYPE_CHECKING:
    from rootsd.wall.session.origins import OriginsInView

_SOCKET = b"/push"
_NAME = b"rootsd-push"
_MAX_WAITING = 64


class PushRelay:
    """The relay, as its owner sees it.

    The warden gets the `listener`, programs the `entries`, and the person what the `channel` asks.
    With push off, no program reaches the relay. But it still remembers which origins were there
    before programs could write settings, which a later relay would read.
    """

    def __init__(
        self,
        folder: bytes,
        record: bytes,
        push: PushPolicy,
        asked: Asked,
        writable: Iterable[bytes] = (),
    ) -> None:
        """Make a relay without a process. Its socket is in the private `folder` of the wall.

        `record` is the file with the known origins. `writable` are the folders that programs may
        write and that are no roots. Raises OSError.
        """
        self.pid = 0
        """The process, or 0 before its start."""
        self._is_started = False
        place = folder + _SOCKET
        entry = ViewEntry(socket_inside(), ViewEntryKind.SOCKET, "git push and fetch", place)
        self.entries: tuple[ViewEntry, ...] = () if push is PushPolicy.OFF else (entry,)
        self._clients = listen_for_requests(place, _MAX_WAITING)
        self.channel, self._owner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener, self._news = socket.socketpair()
        self._known = record, frozenset(writable)
        self._settings = folder, push, asked

    @cached_property
    def _origins(self) -> OriginsInView:
        # Loaded here, because the warden works meanwhile.
        from rootsd.wall.session.origins import OriginsInView  # noqa: PLC0415

        return OriginsInView(self._news, *self._known)

    def find_until(self, other: socket.socket) -> None:
        """Find the origins of roots that programs do not see yet, until `other` is readable."""
        if self._is_started:  # the process does that
            return
        poll = select.poll()
        for each in (other, self._news):
            poll.register(each, select.POLLIN)
        while self._news.fileno() in dict(poll.poll()):
            self._origins.take_news()

    def interest(self) -> tuple[int, ...]:
        """Return descriptors. Start the process as soon as one of them is readable."""
        return () if self._is_started else (self._clients.fileno(), self._news.fileno())

    def start(self) -> None:
        """Start the process, unless it was started."""
        if self._is_started:
            return
        self._is_started = True
        # Most starts do without.
        from rootsd.wall.session.relay_loop import Relay  # noqa: PLC0415

        relay = Relay(self._clients, self._owner, self._origins, *self._settings)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                # Else, a search for garbage takes a copy of all that the owner has loaded.
                gc.freeze()
                _leave_owner(self._clients, self._owner, self._news)
                relay.serve()
            finally:
                os._exit(0)
        self._close_inner()

    def end(self) -> list[str]:
        """End the relay, and return sentences about what it refused."""
        self._close_inner()
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

    def _close_inner(self) -> None:
        for each in (self._clients, self._owner, self._news):
            each.close()


def socket_inside() -> bytes:
    """Return where programs find the relay."""
    return b"/run/user/%d/%s" % (os.geteuid(), _NAME)


def _leave_owner(*channels: socket.socket) -> None:
    """Keep only the channels of the relay, and end with the owner."""
    os.chdir("/")
    # A session of its own: no key of the terminal reaches it, and ssh finds no terminal to ask on.
    os.setsid()
    let_go((0, 1, 2))
    signal.set_wakeup_fd(-1)  # the owner's pipe is closed here
    close_all_except(0, 1, 2, *(each.fileno() for each in channels))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    set_process_option(ProcessOption.PARENT_DEATH_SIGNAL, signal.SIGTERM)
