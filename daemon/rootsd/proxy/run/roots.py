"""Choose which roots one server gets, and answer its requests for them. Pure.

The roots as the relay has them from the daemon, and as a server is told of them. Pure.

Which folders of a session's scope one server is told of. Pure.

The daemon narrows the approved set to the scope of the session. A client's own roots can narrow it
further and never add: a client's folder outside every approved root is only made known to the
user.

Which roots the server is told of now, and who waits to be told. Pure.

Every answer to a server is made when the daemon has said what is right at that moment, never from
what it said earlier. A question of the server also waits, for a bounded time, until the client has
said which folders it works in.

The daemon verifies its roots, and knows nothing of a client's folder inside one. So each folder is
looked at when it is first known, and again whenever it is sent to a server. Where another folder,
or a link, has taken its place, it is left out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

from rootsd.core.paths import PathError, contains, is_utf8, normalize_path, text_of, to_uri
from rootsd.proxy.run.outbox import Outbox
from rootsd.wire.jsonrpc import ErrorResponse, Id, Request, Response, encode


class RootFolder(NamedTuple):
    """A root, or a folder in one. `path` is canonical; `writable` is false where the user asks
    that nothing in it be changed."""

    path: bytes
    name: str
    writable: bool = True

    @property
    def text(self) -> str:
        """The path as programs take it."""
        return text_of(self.path)


def parse_daemon_roots(result: object) -> tuple[RootFolder, ...]:
    """The folders in the daemon's answer to `roots/list`, in its order."""
    match result:
        case {"roots": list() as items}:
            found = (_folder_of(item) for item in items)
            return tuple(folder for folder in found if folder is not None)
        case _:
            return ()


def parse_client_roots(result: object) -> tuple[bytes, ...]:
    """The folders in a client's answer to `roots/list`; what is no absolute path is left out."""
    match result:
        case {"roots": list() as items}:
            uris = (item.get("uri") for item in items if isinstance(item, dict))
            paths = (path_of_uri(uri) for uri in uris if isinstance(uri, str))
            return tuple(path for path in paths if path is not None)
        case _:
            return ()


def path_of_uri(uri: str) -> bytes | None:
    """The path of a `file://` URI on this machine (RFC 8089); None for all others."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    try:
        return normalize_path(unquote_to_bytes(parts.path))
    except PathError:
        return None


def make_roots_result(folders: Iterable[RootFolder]) -> dict[str, Any]:
    """The answer to a server's `roots/list`."""
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
    # Without a word about it, less: what is not known to be writable is not.
    access = meta.get("rootsd/access") if isinstance(meta, dict) else None
    return RootFolder(path, name, access == "read-write")


_GIT = b".git"


class ClientRootsPolicy(Enum):
    """What the roots of the client are good for."""

    AUTO = "auto"
    """Where they are of use they narrow the scope; else the server is told of the whole scope."""
    NARROW = "narrow"
    """They narrow the scope; where they are of no use nothing is left."""
    REPORT = "report"
    """They narrow nothing; those that are not approved are made known to the user."""
    OVERRIDE = "override"
    """They are not asked for."""

    @property
    def narrows(self) -> bool:
        """Whether they take anything away."""
        return self in (ClientRootsPolicy.AUTO, ClientRootsPolicy.NARROW)


class AccessPolicy(Enum):
    """Which roots a server may be told of that could write in any."""

    WRITABLE = "writable"
    ADVISORY = "advisory"
    """Those too that are meant to be read alone: the user trusts the server to heed advice."""


class RootsFilter:
    """The rule for one relay. `here` is the working directory, canonical; None where it is gone.

    `theirs` are the client's folders, canonical; None as long as the client said nothing of use.
    """

    def __init__(
        self, policy: ClientRootsPolicy, access: AccessPolicy, working_directory: bytes | None
    ) -> None:
        self.policy = policy
        self.client_folders: tuple[bytes, ...] | None = None
        self._access = access
        self._working_directory = working_directory

    def set_client_folders(self, theirs: tuple[bytes, ...]) -> None:
        """Take in the folders that the client has open now. A client that had folders of use and
        has none any more opens nothing by that."""
        if theirs or self.client_folders is not None:
            self.client_folders = theirs

    def apply(self, approved: Iterable[RootFolder]) -> tuple[RootFolder, ...]:
        """Return the folders for the server, the one that holds the working directory first."""
        fit = [each for each in approved if each.writable or self._access is AccessPolicy.ADVISORY]
        if self.policy.narrows:
            if self.client_folders is not None:
                return tuple(dict.fromkeys(self._intersection(fit, self.client_folders)))
            if self.policy is ClientRootsPolicy.NARROW:
                return ()
        here = self._innermost(fit)
        return tuple(sorted(fit, key=lambda each: each is not here))

    def outside(self, approved: Iterable[RootFolder]) -> tuple[bytes, ...]:
        """Return the client's folders that have nothing in common with any approved one."""
        known = [each.path for each in approved]
        return tuple(
            path
            for path in self.client_folders or ()
            if not any(contains(path, each) or contains(each, path) for each in known)
        )

    def _innermost(self, folders: Iterable[RootFolder]) -> RootFolder | None:
        if self._working_directory is None:
            return None
        around = [each for each in folders if contains(each.path, self._working_directory)]
        return max(around, key=lambda each: len(each.path), default=None)

    def _intersection(
        self, fit: list[RootFolder], theirs: Iterable[bytes]
    ) -> Iterator[RootFolder]:
        for path in theirs:
            around = [each for each in fit if contains(each.path, path)]
            if around:
                root = max(around, key=lambda each: len(each.path))
                below = path[len(root.path) :]
                if not _is_in_git(below):
                    yield root._replace(path=path, name=root.name + text_of(below))
            else:
                yield from (each for each in fit if contains(path, each.path))


def _is_in_git(below: bytes) -> bool:
    """Return whether a path below a root lies in a `.git`, in any case of letters."""
    return any(part.lower() == _GIT for part in below.split(b"/"))


_CLIENT_TIMEOUT_S = 1.0
"""How long a client is waited for that says it has roots; some that do never answer."""

OnRoots = Callable[[float], None]


class FolderChecker(Protocol):
    """Looks at folders."""

    def canonical(self, path: bytes) -> bytes | None:
        """Return the real path of a folder; None where there is no folder."""

    def fingerprint(self, path: bytes) -> Hashable | None:
        """Return what tells the folder at a canonical path from another one in its place. None
        where there is no folder, or where a link lies in the path."""


class RootsProvider:
    """The roots for one server."""

    def __init__(
        self,
        roots_filter: RootsFilter,
        out: Outbox,
        disk: FolderChecker,
        empty_folder: bytes | None,
    ) -> None:
        self.folders: tuple[RootFolder, ...] = ()
        self.sent: tuple[RootFolder, ...] = ()
        """The folders that the server was told of last."""
        self.deadline = math.inf
        """When to call `tick`."""
        self._filter = roots_filter
        self._out = out
        self._disk = disk
        self._fingerprints: dict[bytes, Hashable | None] = {}
        self._empty_folder = empty_folder
        self._approved: tuple[RootFolder, ...] = ()
        self._in_query: deque[OnRoots] = (
            deque()
        )  # to be callbackled by the answer that is on its way
        self._next_query: deque[OnRoots] = deque()  # by the answer to the next question
        self._query_running = False
        self._result: dict[str, Any] | None = None  # shared by all that is callbackled at one time
        self._awaiting_client: list[OnRoots] = []  # for the client
        self._proposed: set[bytes] = set()
        self._client_queries = 0
        self._client_query: Id | None = None

    @property
    def narrows_by_client(self) -> bool:
        """Whether an answer depends on the client's own roots."""
        return self._filter.policy.narrows

    @property
    def awaits_client(self) -> bool:
        """Whether the client is still to say which folders it works in, the first time."""
        return self.deadline < math.inf

    def verified_folders(self) -> tuple[RootFolder, ...]:
        """Return the folders that may be sent to a server now: each one looked at again, and the
        same as when it was first known."""
        return tuple(each for each in self.folders if self._is_unchanged(each.path))

    def folder_exists(self, path: bytes) -> bool:
        """Whether a program that opens `path` now finds a folder, wherever links lead."""
        return self._disk.canonical(path) is not None

    def record_sent(self, folders: Iterable[RootFolder]) -> None:
        """The server is told of these folders now."""
        self.sent = tuple(folders)
        self._out.reported_roots = tuple(folder.name for folder in self.sent)

    def result(self) -> dict[str, Any]:
        """Return the answer to `roots/list`. It is never an empty list, which some servers ignore:
        a server that has roots keeps them then."""
        if self._result is None:
            folders = self.verified_folders()
            self.record_sent(folders)
            if not folders and self._empty_folder is not None:
                folders = (RootFolder(self._empty_folder, "no approved roots"),)
            self._result = make_roots_result(folders)
        return self._result

    def set_approved(self, approved: tuple[RootFolder, ...]) -> None:
        """The daemon has told what is approved; it has verified these roots just now."""
        self._approved = approved
        for root in approved:
            self._fingerprints.pop(root.path, None)
        self._apply()

    @property
    def unanswered(self) -> int:
        """How many requests are not callbackled."""
        return len(self._in_query) + len(self._next_query) + len(self._awaiting_client)

    def daemon_answered(self, now: float) -> None:
        """The daemon has answered: callback what was wished before it was asked."""
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
        """Call `callback` when the roots are known as they are after this moment.

        Wishes that come while the daemon is asked share the next question. So a server that asks
        again and again costs the daemon one question at a time.
        """
        if self.awaits_client:
            self._awaiting_client.append(callback)
            return
        self._next_query.append(callback)
        self.query_daemon()

    def query_daemon(self) -> None:
        """Ask the daemon if something is wished, and if the server reads what it is told."""
        if self._next_query and not self._query_running and not self._out.server_lags:
            self._in_query, self._next_query = self._next_query, deque()
            self._query_running = True
            self._out.roots_queries += 1

    def ask_client(self, now: float, *, first: bool) -> None:
        """Ask the client for its roots. The `first` time an answer that depends on them waits."""
        if self._filter.policy is ClientRootsPolicy.OVERRIDE:
            return
        self._client_queries += 1
        self._client_query = f"rootsd-run-roots-{self._client_queries}"
        self._out.to_client += encode(Request(self._client_query, "roots/list"))
        if first and self.narrows_by_client:
            self.deadline = now + _CLIENT_TIMEOUT_S

    def take_client_response(self, answer: Response | ErrorResponse) -> bool:
        """Take the client's answer in, if it is one to a question of ours."""
        if not isinstance(answer.id, str) or not answer.id.startswith("rootsd-run-roots-"):
            return False
        if answer.id == self._client_query:
            self.set_client_roots(answer.result if isinstance(answer, Response) else None)
            self._release_waiting()
        return True

    def set_client_roots(self, result: object) -> None:
        """The client's own roots are these, in the form of an answer to `roots/list`."""
        found = [self._disk.canonical(path) for path in parse_client_roots(result)]
        theirs = tuple(path for path in found if path is not None)
        for path in theirs:
            self._fingerprints.pop(path, None)
        self._filter.set_client_folders(theirs)
        self._apply()

    def tick(self, now: float) -> None:
        """Wait no longer for a client that does not answer."""
        if now >= self.deadline:
            self._release_waiting()

    def drop_requests(self) -> None:
        """The server that asked is gone; what the daemon still answers is nobody's wish."""
        self._in_query.clear()
        self._next_query.clear()
        self._awaiting_client.clear()

    def _release_waiting(self) -> None:
        self.deadline = math.inf
        waiting, self._awaiting_client = self._awaiting_client, []
        for callback in waiting:
            self.when_known(callback)

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
        for path in self._filter.outside(self._approved):
            if path not in self._proposed:
                self._proposed.add(path)
                self._out.proposals.append(path)
