"""Serve `git worktree add ../NAME` and `remove ../NAME` inside, if the person allows it.

Programs cannot write beside a root. So the `git` in front of theirs asks the warden (see
`session.worktree_inside`), which makes an empty folder there and shows it, writable. Git takes an
empty folder for a worktree. From then on, this is a worktree like any other: if it inherits the
approval of its checkout, the daemon publishes it, and the root takes the place of the folder. If
that does not happen soon, programs lose the folder. An empty one is removed, and another one is
reported, since nobody has looked at what programs made there.

A request reaches no folder that exists, and no name that programs outside look for, such as
`node_modules` or `bin`: the name must be new, and start with that of a checkout beside it, which
programs see as a writable root.

To remove a worktree, git asks twice: before it empties the folder, and then for the rest; see
`worktree_removal`.
"""

from __future__ import annotations

import math
import os
import re
import select
import socket
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import contains, text_of
from rootsd.disk.git_pointer import GIT
from rootsd.net.unix_socket import listen_for_requests
from rootsd.wall.kernel.root_folder import identity_of
from rootsd.wall.kernel.worktree_removal import Refused
from rootsd.wall.system_calls import closing, open_path

SOCKET = b"/worktrees"
"""The name of the socket in the folder of the wall."""
MADE, DONE = b"made", b"done"
MAY_REMOVE, REMOVE = b"may remove ", b"remove "
"""Requests that a path follows. The answer to both is DONE, or why not."""
_MAX_CLIENTS, _MAX_MADE = 8, 32
_MAX_REQUEST = 4096
_TIMEOUT_S = 10.0
_NAME = re.compile(rb"[-._@+][A-Za-z0-9._@+-]+")
_REFUSED_NAMES = frozenset((b"node_modules",))


class _Made(NamedTuple):
    """A folder that was made beside a checkout, as a root, and how long the daemon may take."""

    root: ConfinedRoot
    checkout: bytes
    until: float


class NewWorktrees:
    """The folders that programs have asked for. `folder` is the private one of the wall."""

    def __init__(self, folder: bytes) -> None:
        self._listener = listen_for_requests(folder + SOCKET, _MAX_CLIENTS)
        self._listener.settimeout(0)
        self._clients: dict[int, socket.socket] = {}
        self._paths: dict[int, bytes] = {}  # by client
        self._finished: set[int] = set()  # the clients whose git has ended
        self._removals: list[tuple[int, bytes]] = []  # requests of clients
        self._made: dict[bytes, _Made] = {}
        self._count = 0

    @property
    def roots(self) -> dict[bytes, ConfinedRoot]:
        """The folders that programs must see besides their roots."""
        return {path: each.root for path, each in self._made.items()}

    @property
    def deadline(self) -> float:
        """When `settle` must be called."""
        return min((each.until for each in self._made.values()), default=math.inf)

    def interest(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors to wait for, with their poll(2) events."""
        if len(self._clients) < _MAX_CLIENTS:
            yield self._listener.fileno(), select.POLLIN
        for fd in self._clients:
            yield fd, select.POLLIN

    def attend(
        self, ready: Container[int], roots: Mapping[bytes, ConfinedRoot], denied: Iterable[bytes]
    ) -> list[int]:
        """Read requests, and return the clients that wait for a folder that was made now."""
        asking = []
        if self._listener.fileno() in ready:
            with suppress(OSError):
                client = self._listener.accept()[0]
                client.settimeout(0)
                self._clients[client.fileno()] = client
        for fd, client in [*self._clients.items()]:
            if fd not in ready:
                continue
            data = b""
            with suppress(OSError):
                data = client.recv(_MAX_REQUEST)
            if (made := self._paths.get(fd)) is not None:
                self._drop_if_empty(made)
            if made is not None and data == DONE:
                self._finished.add(fd)
                continue
            if made is None and data.startswith((MAY_REMOVE, REMOVE)):
                self._removals.append((fd, data))
                continue
            if made is not None or not data:
                self._forget(fd)
                continue
            try:
                self._make(data, roots, denied)
            except (Refused, OSError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                self._answer(fd, f"{text_of(data)} was not made: {why}")
            else:
                self._paths[fd] = data
                asking.append(fd)
        return asking

    def serve_removals(
        self, check: Callable[[bytes], object], remove: Callable[[bytes], object]
    ) -> None:
        """Answer the clients that want to remove a worktree. The functions take its path.

        They raise Refused or OSError.
        """
        for fd, data in self._removals:
            is_check = data.startswith(MAY_REMOVE)
            path = data.removeprefix(MAY_REMOVE if is_check else REMOVE)
            answer = DONE
            try:
                (check if is_check else remove)(path)
            except (Refused, OSError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                answer = f"{text_of(path)} is a root here: {why}".encode("utf-8", "replace")
            self._send(fd, answer)
        self._removals.clear()

    def shown(self, asking: Iterable[int], shown: Container[bytes]) -> None:
        """Answer the clients, now that programs see their folders."""
        for fd in asking:
            path = self._paths[fd]
            if path in shown:
                self._send(fd, MADE)
            else:
                self._drop_if_empty(path)
                self._answer(fd, f"{text_of(path)} was made, but cannot be shown")

    def settle(self, roots: Container[bytes], now: float | None = None) -> list[bytes]:
        """Forget the folders that are roots by now, and those that did not become one in time.

        Without its checkout, none becomes one. Return those of the latter that are not empty.
        """
        left = []
        now = time.monotonic() if now is None else now
        for path, each in [*self._made.items()]:
            if path not in roots and each.checkout in roots and now < each.until:
                continue
            del self._made[path]
            if path not in roots and not self._remove(each.root):
                left.append(path)
        return left

    def tell(self, roots: Container[bytes]) -> None:
        """Tell the clients whose git has ended how it went, once that is known."""
        for fd in [*self._finished]:
            path = self._paths[fd]
            if path in self._made:
                continue
            why = f"{text_of(path)} is not approved; outside: rootsd pending"
            self._answer(fd, "" if path in roots or not os.path.lexists(path) else why)

    def _make(
        self, path: bytes, roots: Mapping[bytes, ConfinedRoot], denied: Iterable[bytes]
    ) -> None:
        """Make a folder. Raises Refused or OSError."""
        parent, name = os.path.split(path)
        if os.path.normpath(path) != path or not path.startswith(b"/"):
            raise Refused("this is no path")
        if any(contains(each, path) for each in (*roots, *denied)):
            raise Refused("programs can make it themselves, or it is denied")
        beside = [
            root.path
            for root in roots.values()
            if os.path.dirname(root.path) == parent
            and root.access is Access.READ_WRITE
            and os.path.isdir(root.path + b"/" + GIT)
            and not os.path.islink(root.path + b"/" + GIT)
        ]
        fits = [
            each for each in beside if path.startswith(each) and _NAME.fullmatch(path[len(each) :])
        ]
        if not fits or name in _REFUSED_NAMES:
            names = " or ".join(text_of(os.path.basename(each)) + "-NAME" for each in beside)
            raise Refused(f"call it {names}" if beside else "no writable checkout lies beside it")
        if self._count == _MAX_MADE:
            raise Refused(f"a session makes at most {_MAX_MADE}")
        with closing(open_path(parent, os.O_DIRECTORY)) as above:
            os.mkdir(name, 0o777, dir_fd=above)  # never one that exists
            self._count += 1
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            with closing(os.open(name, flags, dir_fd=above)) as new:
                found = os.fstat(new)
                if found.st_uid != os.geteuid() or found.st_dev != os.fstat(above).st_dev:
                    raise Refused("something else is there")
                root = ConfinedRoot(path, Access.READ_WRITE, identity_of(new))
        self._made[path] = _Made(root, fits[0], time.monotonic() + _TIMEOUT_S)

    def _drop_if_empty(self, path: bytes) -> None:
        """Let a folder go at once if git put nothing there."""
        each = self._made.get(path)
        if each is not None:
            with suppress(OSError):
                if not os.listdir(path):
                    self._made[path] = each._replace(until=0.0)

    def _remove(self, root: ConfinedRoot) -> bool:
        """Remove a folder if it is empty. Return whether it is gone."""
        parent, name = os.path.split(root.path)
        with suppress(OSError), closing(open_path(parent, os.O_DIRECTORY)) as above:
            with closing(os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=above)) as found:
                is_same = identity_of(found) == root.identity
            if is_same:
                os.rmdir(name, dir_fd=above)
        return not os.path.lexists(root.path)

    def _answer(self, fd: int, text: str) -> None:
        """Answer a client for the last time."""
        self._send(fd, text.encode("utf-8", "replace"))
        self._forget(fd)

    def _send(self, fd: int, data: bytes) -> None:
        with suppress(OSError):
            self._clients[fd].send(data)

    def _forget(self, fd: int) -> None:
        self._paths.pop(fd, None)
        self._finished.discard(fd)
        self._clients.pop(fd).close()
