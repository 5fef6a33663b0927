"""Choose which roots one server gets, and answer its requests for them. Pure.

Two inputs decide. The daemon sends the approved roots, already narrowed to the scope of the
session. The client may say which folders it has open. The client's folders can narrow the roots
but never add one: a client's folder outside every approved root is only proposed to the user.

`RootsFilter` combines the two inputs. `RootsProvider` answers the server. It never answers from an
earlier update of the daemon: each request of the server causes a new query, or shares one that is
about to be sent. A request also waits, for a bounded time, until the client has named its folders.

The daemon verifies its own roots, but it knows nothing about a client's folder inside one. So the
provider takes a fingerprint of each folder when it first sees the folder, and checks it each time
before the folder goes to a server. A folder that was replaced, also by a link, is left out.

A server behind a wall gets the roots of the `WallState`: those that the kernel shows. A root that
holds a denied project is withheld from other servers, but the wall masks the denied project, so
this server gets the root.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from posixpath import join
from typing import Any, Protocol

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import contains, is_utf8, text_of, to_uri
from rootsd.core.quick_tuple import NamedTuple
from rootsd.proxy.client_roots import (
    CLIENT_TIMEOUT_S,
    ClientRoots,
    NamedFolders,
    parse_client_roots,
    path_of_uri,
)
from rootsd.proxy.run.outbox import Outbox
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.wire.jsonrpc import ErrorResponse, Response


class RootFolder(NamedTuple):
    """A root, or a folder inside one.

    `path` is canonical. `writable` is false if the user wants nothing in it to be changed. Only
    the wall can hide the `denied` folders in it.
    """

    path: bytes
    name: str
    writable: bool = True
    denied: frozenset[bytes] = frozenset()

    @property
    def text(self) -> str:
        """The path as text, as programs take it."""
        return text_of(self.path)


def parse_daemon_roots(result: object) -> tuple[RootFolder, ...]:
    """Return the folders in the daemon's answer to `roots/list`, in its order."""
    match result:
        case {"roots": list() as items}:
            found = (_folder_of(item) for item in items)
            return tuple(folder for folder in found if folder is not None)
        case _:
            return ()


def make_roots_result(folders: Iterable[RootFolder]) -> dict[str, Any]:
    """Return the answer to a server's `roots/list`."""
    return {"roots": [{"uri": to_uri(each.path), "name": each.name} for each in folders]}


def _folder_of(item: object) -> RootFolder | None:
    match item:
        case {"uri": str() as uri, "name": str() as name, **more}:
            path = path_of_uri(uri)
            meta = more.get("_meta")
        case _:
            return None
    if path is None or not is_utf8(path):
        return None
    # A root without a valid access value counts as read-only.
    access = meta.get("rootsd/access") if isinstance(meta, dict) else None
    return RootFolder(path, name, access == "read-write")


STAY_REMEDY = "rootsd run --stay"
"""What helps if the client does not say where the session works."""
_GIT = b".git"
_NOWHERE = b"/dev/null"
"""A path that no folder has."""


class WallState(NamedTuple):
    """The roots behind a server's wall.

    `view` are the roots that the daemon wants there, sorted by name. `shown` are the paths of
    those that the kernel shows. While `is_changing`, the kernel is about to change. While
    `is_away`, no daemon says what is approved.
    """

    view: tuple[ConfinedRoot, ...] = ()
    shown: frozenset[bytes] = frozenset()
    is_changing: bool = False
    is_away: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether a daemon is there, and the kernel shows what it wants."""
        return not (self.is_changing or self.is_away)

    def reachable(self) -> tuple[RootFolder, ...]:
        """Return the roots that the server may have and can reach."""
        return tuple(
            RootFolder(
                root.path,
                root.name + text_of(root.path[len(root.whole or root.path) :]),
                root.access is Access.READ_WRITE,
            )
            for root in self.view
            if root.path in self.shown
        )

    def masks(self, path: bytes) -> bool:
        """Return whether `path` lies in a denied folder inside a root."""
        return any(contains(denied, path) for root in self.view for denied in root.denied)


class RootsFilter:
    """The rule that chooses one server's roots.

    `working_directory` is canonical, or None if it no longer exists. `client_folders` are
    canonical too, or None until the client has named one that exists. `wall` is None without a
    wall.
    """

    def __init__(
        self, policy: ClientRootsPolicy, access: AccessPolicy, working_directory: bytes | None
    ) -> None:
        self.policy = policy
        self.client_folders: tuple[bytes, ...] | None = None
        self.wall: WallState | None = None
        self.working_directory = working_directory
        """Where the session works now."""
        self.within: bytes | None = None
        """The folder that holds all that the server gets, or None for whole roots. The path of no
        folder stands for nothing.
        """
        self._access = access

    def set_client_folders(self, theirs: tuple[bytes, ...]) -> None:
        """Set the folders that the client has open.

        If the client had folders and has none now, the roots stay narrowed.
        """
        if theirs or self.client_folders is not None:
            self.client_folders = theirs

    def apply(self, approved: Iterable[RootFolder]) -> tuple[RootFolder, ...]:
        """Return the server's roots. The one with the working directory comes first."""
        fit = [each for each in approved if each.writable or self._access is AccessPolicy.ADVISORY]
        if self.within is not None:
            fit = list(self._intersection(fit, (self.within,)))
        if self.policy.narrows:
            if self.client_folders is not None:
                return tuple(dict.fromkeys(self._intersection(fit, self.client_folders)))
            if self.policy is ClientRootsPolicy.NARROW:
                return ()
        here = self._innermost(fit)
        return tuple(sorted(fit, key=lambda each: each is not here))

    def outside(self, approved: Iterable[RootFolder]) -> tuple[bytes, ...]:
        """Return the client's folders that neither lie in an approved root nor contain one."""
        known = [each.path for each in approved]
        if self.wall is not None:
            known += [root.path for root in self.wall.view]
        return tuple(
            path
            for path in self.client_folders or ()
            if not any(contains(path, each) or contains(each, path) for each in known)
        )

    def _innermost(self, folders: Iterable[RootFolder]) -> RootFolder | None:
        if self.working_directory is None:
            return None
        around = [each for each in folders if contains(each.path, self.working_directory)]
        return max(around, key=lambda each: len(each.path), default=None)

    def _intersection(
        self, fit: list[RootFolder], theirs: Iterable[bytes]
    ) -> Iterator[RootFolder]:
        for path in theirs:
            around = [each for each in fit if contains(each.path, path)]
            if around:
                root = max(around, key=lambda each: len(each.path))
                below = path[len(root.path) :]
                is_masked = self.wall is not None and self.wall.masks(path)
                if not is_masked and not _is_in_git(below):
                    yield root._replace(path=path, name=root.name + text_of(below))
            else:
                yield from (each for each in fit if contains(path, each.path))


def _is_in_git(below: bytes) -> bool:
    """Return whether a path below a root lies in a `.git` folder, in any letter case."""
    return any(part.lower() == _GIT for part in below.split(b"/"))


def _ignore(_: bytes) -> None:
    """Do nothing: no wall shows the folders."""


OnRoots = Callable[[float], None]


class FolderChecker(Protocol):
    """An interface to the folders on the disk."""

    def canonical(self, path: bytes) -> bytes | None:
        """Return the real path of a folder; None if there is no folder."""

    def fingerprint(self, path: bytes) -> Hashable | None:
        """Return the identity of the folder at a canonical path, which another folder there lacks.

        Return None if there is no folder, or if the path contains a link.
        """


class RootsProvider:
    """The source of roots for one server.

    `below` is a relative path: the server gets only that folder of the place where the session
    works.
    """

    def __init__(
        self,
        roots_filter: RootsFilter,
        out: Outbox,
        disk: FolderChecker,
        empty_folder: bytes | None,
        below: bytes | None = None,
    ) -> None:
        self.show_only: Callable[[bytes], None] = _ignore
        """Called with the folder that holds all that the server gets, when it is another one."""
        self.folders: tuple[RootFolder, ...] = ()
        self.sent: tuple[RootFolder, ...] = ()
        """The folders that the server got last."""
        self._wait_until = math.inf  # for the client to name its folders for the first time
        self._filter = roots_filter
        self._out = out
        self._disk = disk
        self._fingerprints: dict[bytes, Hashable | None] = {}
        self._empty_folder = empty_folder
        self._below = below
        self._approved: tuple[RootFolder, ...] = ()
        self.is_known = False
        """Whether a daemon has said what is approved."""
        self._in_query: deque[OnRoots] = deque()  # served by the answer that is on its way
        self._next_query: deque[OnRoots] = deque()  # served by the next query
        self._query_running = False
        self._result: dict[str, Any] | None = None  # shared by all requests of one update
        self._awaiting_client: list[OnRoots] = []  # requests that wait for the client's folders
        self._proposed: set[bytes] = set()
        self.client = ClientRoots(
            "rootsd-run-roots-",
            lambda result: self.real_folders(parse_client_roots(result)),
            STAY_REMEDY,
        )
        self.move_to(roots_filter.working_directory)

    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        return min(self._wait_until, self.client.deadline)

    @property
    def within(self) -> bytes | None:
        """The folder that holds all that the server gets, or None for whole roots."""
        return self._filter.within

    @property
    def narrows_by_client(self) -> bool:
        """Whether an answer depends on the client's own roots."""
        return self._filter.policy.narrows

    @property
    def awaits_client(self) -> bool:
        """Whether the client has yet to name its folders for the first time."""
        return self._wait_until < math.inf

    def verified_folders(self) -> tuple[RootFolder, ...]:
        """Return the folders that a server may get now: those whose fingerprint is unchanged."""
        return tuple(each for each in self.folders if self._is_unchanged(each.path))

    def folder_exists(self, path: bytes) -> bool:
        """Whether a program that opens `path` now finds a folder, links followed."""
        return self._disk.canonical(path) is not None

    def identity(self, path: bytes) -> Hashable | None:
        """Return the identity of the folder at a real path; None if there is no folder."""
        return self._disk.fingerprint(path)

    def record_sent(self, folders: Iterable[RootFolder]) -> None:
        """Record the folders that the server gets now."""
        self.sent = tuple(folders)
        self._out.reported_roots = tuple(folder.name for folder in self.sent)

    def result(self) -> dict[str, Any]:
        """Return the answer to `roots/list`.

        It is never an empty list, because some servers ignore one and keep the roots they have.
        The empty folder stands for "no roots".
        """
        if self._result is None:
            folders = self.verified_folders()
            self.record_sent(folders)
            if not folders and self._empty_folder is not None:
                folders = (RootFolder(self._empty_folder, "no approved roots"),)
            self._result = make_roots_result(folders)
        return self._result

    @property
    def kept(self) -> tuple[RootFolder, ...]:
        """The folders that the server got last, without those that a wall has taken from it."""
        wall = self._filter.wall
        if wall is None:
            return self.sent
        return tuple(
            each for each in self.sent if any(contains(path, each.path) for path in wall.shown)
        )

    @property
    def wall_is_settled(self) -> bool:
        """Whether there is no wall, or a daemon is there and the kernel shows what it wants."""
        return self._filter.wall is None or self._filter.wall.is_settled

    def holds(self, path: bytes | None) -> bool:
        """Return whether one of the server's folders contains `path`."""
        return path is not None and any(contains(each.path, path) for each in self.folders)

    def move_to(self, place: bytes | None) -> None:
        """Put the root with the new working directory of the session first."""
        self._filter.working_directory = place
        if self._below is not None:
            folder = None if place is None else self._disk.canonical(join(place, self._below))
            within = _NOWHERE if folder is None or _is_in_git(folder) else folder
            before, self._filter.within = self._filter.within, within
            if within != before:
                self.show_only(within)
        self._apply()

    def set_wall(self, state: WallState) -> None:
        """Set the roots behind the wall. The warden has verified those that it shows."""
        before, self._filter.wall = self._filter.wall, state
        self._approved, self.is_known = state.reachable(), True
        if before is None or before.view != state.view:
            for root in state.view:
                self._fingerprints.pop(root.path, None)
        self._apply()

    def set_approved(self, approved: tuple[RootFolder, ...]) -> None:
        """Set the approved roots, which the daemon has just verified."""
        self._approved, self.is_known = approved, True
        for root in approved:
            self._fingerprints.pop(root.path, None)
        self._apply()

    def forget_approved(self) -> None:
        """Treat nothing as approved, because no daemon says what is."""
        self._approved, self.is_known = (), False
        self._apply()

    @property
    def unanswered(self) -> int:
        """How many requests have no answer yet."""
        return len(self._in_query) + len(self._next_query) + len(self._awaiting_client)

    def daemon_answered(self, now: float) -> None:
        """Answer the requests that came before the query that the daemon has now answered."""
        self._query_running = False
        self._result = None
        while self._in_query:
            if self._out.server_lags:
                self._next_query.extendleft(reversed(self._in_query))
                self._in_query.clear()
            else:
                self._in_query.popleft()(now)
        self._result = None
        self.query_daemon()

    def when_known(self, callback: OnRoots) -> None:
        """Call `callback` as soon as the roots of a moment after this call are known.

        Requests that come while a query runs share the next query. So a server that asks again and
        again causes one query at a time.
        """
        if self.awaits_client:
            self._awaiting_client.append(callback)
            return
        self._next_query.append(callback)
        self.query_daemon()

    def query_daemon(self) -> None:
        """Query the daemon if a request waits and the server reads its input."""
        if self._next_query and not self._query_running and not self._out.server_lags:
            self._in_query, self._next_query = self._next_query, deque()
            self._query_running = True
            self._out.roots_queries += 1

    def ask_client(self, now: float) -> None:
        """Ask the client for its roots for the first time. Answers that depend on them wait."""
        self._out.to_client += self.client.ask(now)
        if self.narrows_by_client:
            self._wait_until = now + CLIENT_TIMEOUT_S

    def ask_client_again(self, now: float) -> None:
        """Ask the client for its roots, unless it has yet to answer an earlier question."""
        self._out.to_client += self.client.ask_again(now)

    def take_client_response(self, answer: Response | ErrorResponse) -> bool:
        """Use the client's response if it answers a request of ours. Return whether it does."""
        if self.client.take(answer):
            self.set_client_roots(answer.result if isinstance(answer, Response) else None)
            self._release_waiting()
            return True
        return self.client.is_ours(answer.id)

    def real_folders(self, named: NamedFolders) -> tuple[bytes, ...]:
        """Return the folders of a session. One that does not exist keeps its place and path."""
        return tuple(self._only_folder(paths) or paths[0] for paths in named)

    def set_client_roots(self, result: object) -> None:
        """Set the client's own roots, from a result of `roots/list`."""
        found = [self._only_folder(paths) for paths in parse_client_roots(result)]
        theirs = tuple(path for path in found if path is not None)
        for path in theirs:
            self._fingerprints.pop(path, None)
        self._filter.set_client_folders(theirs)
        self._apply()

    def tick(self, now: float) -> None:
        """Stop waiting for a client that does not answer, and ask one whose folders changed."""
        if now >= self._wait_until:
            self._release_waiting()
        self._out.to_client += self.client.tick(now)

    def drop_requests(self) -> None:
        """Drop all requests: the server that sent them is gone."""
        self._in_query.clear()
        self._next_query.clear()
        self._awaiting_client.clear()

    def _release_waiting(self) -> None:
        self._wait_until = math.inf
        waiting, self._awaiting_client = self._awaiting_client, []
        for callback in waiting:
            self.when_known(callback)

    def _only_folder(self, paths: Iterable[bytes]) -> bytes | None:
        """Return the folder at these paths, or None unless there is exactly one."""
        found = {self._disk.canonical(path) for path in paths} - {None}
        return found.pop() if len(found) == 1 else None

    def _is_unchanged(self, path: bytes) -> bool:
        mark = self._disk.fingerprint(path)
        return mark is not None and mark == self._fingerprints.get(path)

    def _apply(self) -> None:
        self._result = None
        self.folders = self._filter.apply(self._approved)
        paths = [folder.path for folder in self.folders]
        known = self._fingerprints
        self._fingerprints = {
            path: known[path] if path in known else self._disk.fingerprint(path) for path in paths
        }
        # Before the daemon has answered, every folder is outside, also the parent of all projects.
        for path in self._filter.outside(self._approved) if self.is_known else ():
            if path not in self._proposed:
                self._proposed.add(path)
                self._out.proposals.append(path)
