"""Tell a process outside which roots programs see: the relay for git.

The warden tells it about a root *before* programs see the root, and waits for its answer. So the
listener can read what only a person could have written so far. After each change, the warden tells
it all roots that programs see.

The listener sends lines, too: an empty one is an answer, and another one is what it has refused to
programs.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import DesiredMount, MountPurpose
from rootsd.core.paths import text_of
from rootsd.core.record import to_line

_TIMEOUT_S = 10.0
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
        self._lines = bytearray()
        self.refused: tuple[str, ...] = ()
        """What the listener has refused to programs."""
        if channel is not None:
            channel.settimeout(_TIMEOUT_S)

    @property
    def fd(self) -> int:
        """The descriptor of the channel, or -1 without one."""
        return -1 if self._channel is None else self._channel.fileno()

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
            self._unanswered += self._send(SeenRoots(NewsKind.ABOUT_TO_SHOW, roots))

    def wait(self) -> None:
        """Wait until the listener knows all that was announced. Give it up if it does not answer.

        A listener that is late must not take what programs wrote for what a person wrote.
        """
        while self._unanswered and self._channel is not None:
            self.attend()

    def attend(self) -> None:
        """Wait for what the listener sends, and take it."""
        data = b""
        if self._channel is not None:
            with suppress(OSError):
                data = self._channel.recv(_CHUNK)
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

    def _send(self, news: SeenRoots) -> bool:
        """Send a line, and return whether that was possible."""
        if self._channel is None:
            return False
        try:
            self._channel.sendall(to_line(news))
        except OSError:
            self._give_up()
            return False
        return True

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
