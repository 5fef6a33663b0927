"""Which roots the server is told of now, and who waits to be told. Pure.

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
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from rootsd.relay.narrowing import ClientRoots, Narrowing
from rootsd.relay.outbox import Outbox
from rootsd.relay.roots import Folder, paths_of, roots_result
from rootsd.wire.jsonrpc import Fault, Id, Reply, Request, encode

_CLIENT_PATIENCE_S = 1.0
"""How long a client is waited for that says it has roots; some that do never answer."""

Wish = Callable[[float], None]


class Disk(Protocol):
    """Looks at folders."""

    def canonical(self, path: bytes) -> bytes | None:
        """Return the real path of a folder; None where there is no folder."""

    def mark_of(self, path: bytes) -> Hashable | None:
        """Return what tells the folder at a canonical path from another one in its place. None
        where there is no folder, or where a link lies in the path."""


class Supply:
    """The roots for one server."""

    def __init__(
        self, narrowing: Narrowing, out: Outbox, disk: Disk, nowhere: bytes | None
    ) -> None:
        self.folders: tuple[Folder, ...] = ()
        self.given: tuple[Folder, ...] = ()
        """The folders that the server was told of last."""
        self.deadline = math.inf
        """When to call `tick`."""
        self._narrowing = narrowing
        self._out = out
        self._disk = disk
        self._marks: dict[bytes, Hashable | None] = {}
        self._nowhere = nowhere
        self._approved: tuple[Folder, ...] = ()
        self._asked: deque[Wish] = deque()  # to be fulfilled by the answer that is on its way
        self._later: deque[Wish] = deque()  # by the answer to the next question
        self._is_asking = False
        self._result: dict[str, Any] | None = None  # shared by all that is fulfilled at one time
        self._waiting: list[Wish] = []  # for the client
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

    def checked(self) -> tuple[Folder, ...]:
        """Return the folders that may be sent to a server now: each one looked at again, and the
        same as when it was first known."""
        return tuple(each for each in self.folders if self._is_same(each.path))

    def is_there(self, path: bytes) -> bool:
        """Whether a program that opens `path` now finds a folder, wherever links lead."""
        return self._disk.canonical(path) is not None

    def note_told(self, folders: Iterable[Folder]) -> None:
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
                folders = (Folder(self._nowhere, "no approved roots"),)
            self._result = roots_result(folders)
        return self._result

    def learn(self, approved: tuple[Folder, ...]) -> None:
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

    def wish(self, fulfil: Wish) -> None:
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
        if self._narrowing.use is ClientRoots.OVERRIDE:
            return
        self._questions += 1
        self._question = f"rootsd-run-roots-{self._questions}"
        self._out.to_client += encode(Request(self._question, "roots/list"))
        if first and self.asks_client:
            self.deadline = now + _CLIENT_PATIENCE_S

    def is_answer(self, answer: Reply | Fault) -> bool:
        """Take the client's answer in, if it is one to a question of ours."""
        if not isinstance(answer.id, str) or not answer.id.startswith("rootsd-run-roots-"):
            return False
        if answer.id == self._question:
            self.heed(answer.result if isinstance(answer, Reply) else None)
            self._settle()
        return True

    def heed(self, result: object) -> None:
        """The client's own roots are these, in the form of an answer to `roots/list`."""
        found = [self._disk.canonical(path) for path in paths_of(result)]
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
