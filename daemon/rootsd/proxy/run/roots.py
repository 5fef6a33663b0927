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
    NOTE = "note"
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

    def __init__(self, use: ClientRootsPolicy, access: AccessPolicy, here: bytes | None) -> None:
        self.use = use
        self.theirs: tuple[bytes, ...] | None = None
        self._access = access
        self._here = here

    def heed(self, theirs: tuple[bytes, ...]) -> None:
        """Take in the folders that the client has open now. A client that had folders of use and
        has none any more opens nothing by that."""
        if theirs or self.theirs is not None:
            self.theirs = theirs

    def apply(self, approved: Iterable[RootFolder]) -> tuple[RootFolder, ...]:
        """Return the folders for the server, the one that holds the working directory first."""
        fit = [each for each in approved if each.writable or self._access is AccessPolicy.ADVISORY]
        if self.use.narrows:
            if self.theirs is not None:
                return tuple(dict.fromkeys(self._shared(fit, self.theirs)))
            if self.use is ClientRootsPolicy.NARROW:
                return ()
        here = self._innermost(fit)
        return tuple(sorted(fit, key=lambda each: each is not here))

    def outside(self, approved: Iterable[RootFolder]) -> tuple[bytes, ...]:
        """Return the client's folders that have nothing in common with any approved one."""
        known = [each.path for each in approved]
        return tuple(
            path
            for path in self.theirs or ()
            if not any(contains(path, each) or contains(each, path) for each in known)
        )

    def _innermost(self, folders: Iterable[RootFolder]) -> RootFolder | None:
        if self._here is None:
            return None
        around = [each for each in folders if contains(each.path, self._here)]
        return max(around, key=lambda each: len(each.path), default=None)

    def _shared(self, fit: list[RootFolder], theirs: Iterable[bytes]) -> Iterator[RootFolder]:
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


_CLIENT_PATIENCE_S = 1.0
"""How long a client is waited for that says it has roots; some that do never answer."""

OnRoots = Callable[[float], None]


class FolderChecker(Protocol):
    """Looks at folders."""

    def canonical(self, path: bytes) -> bytes | None:
        """Return the real path of a folder; None where there is no folder."""

    def mark_of(self, path: bytes) -> Hashable | None:
        """Return what tells the folder at a canonical path from another one in its place. None
        where there is no folder, or where a link lies in the path."""


class RootsProvider:
    """The roots for one server."""

    def __init__(
        self, narrowing: RootsFilter, out: Outbox, disk: FolderChecker, nowhere: bytes | None
    ) -> None:
        self.folders: tuple[RootFolder, ...] = ()
        self.given: tuple[RootFolder, ...] = ()
        """The folders that the server was told of last."""
        self.deadline = math.inf
        """When to call `tick`."""
        self._narrowing = narrowing
        self._out = out
        self._disk = disk
        self._marks: dict[bytes, Hashable | None] = {}
        self._nowhere = nowhere
        self._approved: tuple[RootFolder, ...] = ()
        self._asked: deque[OnRoots] = deque()  # to be fulfilled by the answer that is on its way
        self._later: deque[OnRoots] = deque()  # by the answer to the next question
        self._is_asking = False
        self._result: dict[str, Any] | None = None  # shared by all that is fulfilled at one time
        self._waiting: list[OnRoots] = []  # for the client
        self._proposed: set[bytes] = set()
        self._questions = 0
        self._question: Id | None = None

    @property
    def asks_client(self) -> bool:
        """Whether an answer depends on the client's own roots."""
        return self._narrowing.use.narrows

    @property
    def awaits_client(self) -> bool:
        """Whether the client is still to say which folders it works in, the first time."""
        return self.deadline < math.inf

    def checked(self) -> tuple[RootFolder, ...]:
        """Return the folders that may be sent to a server now: each one looked at again, and the
        same as when it was first known."""
        return tuple(each for each in self.folders if self._is_same(each.path))

    def is_there(self, path: bytes) -> bool:
        """Whether a program that opens `path` now finds a folder, wherever links lead."""
        return self._disk.canonical(path) is not None

    def note_told(self, folders: Iterable[RootFolder]) -> None:
        """The server is told of these folders now."""
        self.given = tuple(folders)
        self._out.told = tuple(folder.name for folder in self.given)

    def result(self) -> dict[str, Any]:
        """Return the answer to `roots/list`. It is never an empty list, which some servers ignore:
        a server that has roots keeps them then."""
        if self._result is None:
            folders = self.checked()
            self.note_told(folders)
            if not folders and self._nowhere is not None:
                folders = (RootFolder(self._nowhere, "no approved roots"),)
            self._result = make_roots_result(folders)
        return self._result

    def learn(self, approved: tuple[RootFolder, ...]) -> None:
        """The daemon has told what is approved; it has verified these roots just now."""
        self._approved = approved
        for root in approved:
            self._marks.pop(root.path, None)
        self._apply()

    @property
    def owed(self) -> int:
        """How many wishes are not fulfilled."""
        return len(self._asked) + len(self._later) + len(self._waiting)

    def grant(self, now: float) -> None:
        """The daemon has answered: fulfil what was wished before it was asked."""
        self._is_asking = False
        self._result = None
        while self._asked:
            if self._out.server_lags:
                self._later.extendleft(reversed(self._asked))
                self._asked.clear()
            else:
                self._asked.popleft()(now)
        self._result = None
        self.ask()

    def wish(self, fulfil: OnRoots) -> None:
        """Call `fulfil` when the roots are known as they are after this moment.

        Wishes that come while the daemon is asked share the next question. So a server that asks
        again and again costs the daemon one question at a time.
        """
        if self.awaits_client:
            self._waiting.append(fulfil)
            return
        self._later.append(fulfil)
        self.ask()

    def ask(self) -> None:
        """Ask the daemon if something is wished, and if the server reads what it is told."""
        if self._later and not self._is_asking and not self._out.server_lags:
            self._asked, self._later = self._later, deque()
            self._is_asking = True
            self._out.questions += 1

    def ask_client(self, now: float, *, first: bool) -> None:
        """Ask the client for its roots. The `first` time an answer that depends on them waits."""
        if self._narrowing.use is ClientRootsPolicy.OVERRIDE:
            return
        self._questions += 1
        self._question = f"rootsd-run-roots-{self._questions}"
        self._out.to_client += encode(Request(self._question, "roots/list"))
        if first and self.asks_client:
            self.deadline = now + _CLIENT_PATIENCE_S

    def is_answer(self, answer: Response | ErrorResponse) -> bool:
        """Take the client's answer in, if it is one to a question of ours."""
        if not isinstance(answer.id, str) or not answer.id.startswith("rootsd-run-roots-"):
            return False
        if answer.id == self._question:
            self.heed(answer.result if isinstance(answer, Response) else None)
            self._settle()
        return True

    def heed(self, result: object) -> None:
        """The client's own roots are these, in the form of an answer to `roots/list`."""
        found = [self._disk.canonical(path) for path in parse_client_roots(result)]
        theirs = tuple(path for path in found if path is not None)
        for path in theirs:
            self._marks.pop(path, None)
        self._narrowing.heed(theirs)
        self._apply()

    def tick(self, now: float) -> None:
        """Wait no longer for a client that does not answer."""
        if now >= self.deadline:
            self._settle()

    def forget_wishes(self) -> None:
        """The server that asked is gone; what the daemon still answers is nobody's wish."""
        self._asked.clear()
        self._later.clear()
        self._waiting.clear()

    def _settle(self) -> None:
        self.deadline = math.inf
        waiting, self._waiting = self._waiting, []
        for fulfil in waiting:
            self.wish(fulfil)

    def _is_same(self, path: bytes) -> bool:
        mark = self._disk.mark_of(path)
        return mark is not None and mark == self._marks.get(path)

    def _apply(self) -> None:
        self._result = None
        self.folders = self._narrowing.apply(self._approved)
        paths = [folder.path for folder in self.folders]
        known = self._marks
        self._marks = {
            path: known[path] if path in known else self._disk.mark_of(path) for path in paths
        }
        for path in self._narrowing.outside(self._approved):
            if path not in self._proposed:
                self._proposed.add(path)
                self._out.proposals.append(path)
