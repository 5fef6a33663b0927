"""Tell a process outside which roots programs see: the relay for git.

The warden tells it about a root *before* programs see the root, and waits for its answer. So the
listener can read what only a person could have written so far. After each change, the warden tells
it all roots that programs see.

The listener sends lines, too: an empty one is an answer, and another one is what it has refused to
programs.
"""

from __future__ import annotations

import math
import select
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import DesiredMount, MountPurpose
from rootsd.core.paths import text_of
from rootsd.core.record import to_line

_TIMEOUT_S = 10.0
_MAX_UNSENT = 1 << 24
_CHUNK = 1 << 12
ANSWER = b"\n"


class NewsKind(Enum):
    """What the roots of the news are."""

    ABOUT_TO_SHOW = "about to show"
    """Programs will see these, too. The listener answers with `ANSWER`."""
    SHOWN = "shown"
    """Programs see these, and no others."""


class SeenRoot(NamedTuple):
    """A root that programs see. `git` is the git directory outside of it that it may use."""

    path: bytes
    access: Access
    git: bytes | None = None


class SeenRoots(NamedTuple):
    """A line for the listener."""

    kind: NewsKind
    roots: tuple[SeenRoot, ...]


class RootTeller:
    """Tells the listener at the other end of a channel, if there is one."""

    def __init__(self, channel: socket.socket | None) -> None:
        self._channel = channel
        self._known: dict[bytes, Access] = {}
        self._unanswered = 0
        self._outgoing = bytearray()
        self._lines = bytearray()
        self.refused: tuple[str, ...] = ()
        """What the listener has refused to programs."""
        if channel is not None:
            channel.settimeout(0)

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the channel, with its poll(2) events."""
        if self._channel is not None:
            wanted = select.POLLIN | (select.POLLOUT if self._outgoing else 0)
            yield self._channel.fileno(), wanted

    def unknown(self, desired: Mapping[bytes, DesiredMount]) -> frozenset[bytes]:
        """Return the roots in `desired` that the listener does not know with this access."""
        if self._channel is None:
            return frozenset()
        return frozenset(
            path
            for path, mount in desired.items()
            if mount.purpose is MountPurpose.ROOT and self._known.get(path) is not mount.access
        )

    def announce(
        self,
        paths: Iterable[bytes],
        desired: Mapping[bytes, DesiredMount],
        git: Mapping[bytes, bytes],
    ) -> None:
        """Tell about roots that programs do not see yet. Call `wait` before they do."""
        if roots := _seen(paths, desired, git):
            self._unanswered += 1
            self._send(SeenRoots(NewsKind.ABOUT_TO_SHOW, roots))

    def wait(self, others: Iterable[tuple[int, int]] = (), until: float = math.inf) -> bool:
        """Wait until the listener knows all that was announced, and return whether it does.

        Do not wait longer than `until`, or until one of the descriptors `others` is ready. Give up
        a listener that takes longer: it must not take what programs wrote for a person's.
        """
        due = time.monotonic() + _TIMEOUT_S
        while self._unanswered and self._channel is not None:
            poll = select.poll()
            for fd, events in (*others, *self.interest()):
                poll.register(fd, events)
            left_s = min(due, until) - time.monotonic()
            ready = dict(poll.poll(math.ceil(max(left_s, 0.0) * 1000)))
            if self._channel.fileno() in ready:
                self.attend()
            elif ready or time.monotonic() >= until:
                return False
            elif time.monotonic() >= due:
                self._give_up()
        return True

    def attend(self) -> None:
        """Send what the listener did not take yet, and take what it sends."""
        data = b""
        try:
            self._flush()
            if self._channel is not None:
                data = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            pass
        if not data:
            self._give_up()
        *lines, self._lines = (self._lines + data).split(b"\n")
        told = [text_of(bytes(line)) for line in lines if line]
        self._unanswered -= len(lines) - len(told)
        self.refused += tuple(told)

    def tell(
        self,
        paths: Iterable[bytes],
        shown: Mapping[bytes, DesiredMount],
        git: Mapping[bytes, bytes],
    ) -> None:
        """Tell which of the roots `paths` programs see now."""
        roots = _seen((path for path in paths if path in shown), shown, git)
        self._known = {root.path: root.access for root in roots}
        self._send(SeenRoots(NewsKind.SHOWN, roots))

    def _send(self, news: SeenRoots) -> None:
        if self._channel is not None:
            self._outgoing += to_line(news)
            self._flush()

    def _flush(self) -> None:
        """Send what the listener takes now. It may be stopped, and a revoke must not wait."""
        try:
            while self._outgoing and self._channel is not None:
                del self._outgoing[: self._channel.send(self._outgoing)]
        except BlockingIOError:
            if len(self._outgoing) > _MAX_UNSENT:
                self._give_up()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Hang up for all holders of the channel, so that the listener knows no root any more."""
        if self._channel is not None:
            with suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)
        self._channel = None


def _seen(
    paths: Iterable[bytes], mounts: Mapping[bytes, DesiredMount], git: Mapping[bytes, bytes]
) -> tuple[SeenRoot, ...]:
    return tuple(SeenRoot(path, mounts[path].access, git.get(path)) for path in sorted(paths))
