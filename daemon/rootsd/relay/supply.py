"""Which roots the server is told of now, and who waits to be told. Pure.

Every answer to a server is made when the daemon has said what is right at that moment, never from
what it said earlier. A question of the server also waits, for a bounded time, until the client has
said which folders it works in.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from rootsd.relay.narrowing import ClientRoots, Narrowing
from rootsd.relay.outbox import Outbox
from rootsd.relay.roots import Folder, paths_of, roots_result
from rootsd.wire.jsonrpc import Fault, Id, Reply, Request, encode

_CLIENT_PATIENCE_S = 1.0
"""How long a client is waited for that says it has roots; some that do never answer."""

Wish = Callable[[float], None]
Canonical = Callable[[bytes], bytes | None]


class Supply:
    """The roots for one server. `canonical` gives the real path of a folder, or None."""

    def __init__(
        self, narrowing: Narrowing, out: Outbox, canonical: Canonical, nowhere: bytes | None
    ) -> None:
        self.folders: tuple[Folder, ...] = ()
        self.deadline = math.inf
        """When to call `tick`."""
        self._narrowing = narrowing
        self._out = out
        self._canonical = canonical
        self._nowhere = nowhere
        self._approved: tuple[Folder, ...] = ()
        self._wishes: deque[Wish] = deque()
        self._waiting: list[Wish] = []
        self._proposed: set[bytes] = set()
        self._questions = 0
        self._question: Id | None = None

    @property
    def asks_client(self) -> bool:
        """Whether the client's own roots are of interest."""
        return self._narrowing.use is not ClientRoots.OVERRIDE

    @property
    def awaits_client(self) -> bool:
        """Whether the client is still to say which folders it works in, the first time."""
        return self.deadline < math.inf

    def note_told(self) -> None:
        """The server is told of the roots now."""
        self._out.told = tuple(folder.name for folder in self.folders)

    def result(self) -> dict[str, Any]:
        """The answer to `roots/list`. Never an empty list, which some servers ignore: one that
        has roots keeps them then."""
        self.note_told()
        if not self.folders and self._nowhere is not None:
            return roots_result([Folder(self._nowhere, "no approved roots")])
        return roots_result(self.folders)

    def learn(self, approved: tuple[Folder, ...]) -> None:
        """The daemon has told what is approved."""
        self._approved = approved
        self._apply()

    def grant(self, now: float) -> None:
        """It has answered the oldest question."""
        if self._wishes:
            self._wishes.popleft()(now)

    def wish(self, fulfil: Wish) -> None:
        """Call `fulfil` when the roots are known as they are after this moment."""
        if self.awaits_client:
            self._waiting.append(fulfil)
            return
        self._wishes.append(fulfil)
        self._out.questions += 1

    def ask_client(self, now: float, *, first: bool) -> None:
        """Ask the client for its roots; the `first` time they are waited for."""
        if not self.asks_client:
            return
        self._questions += 1
        self._question = f"rootsd-run-roots-{self._questions}"
        self._out.to_client += encode(Request(self._question, "roots/list"))
        if first:
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
        found = [self._canonical(path) for path in paths_of(result)]
        theirs = tuple(path for path in found if path is not None)
        self._narrowing.theirs = theirs or None
        self._apply()

    def tick(self, now: float) -> None:
        """Wait no longer for a client that does not answer."""
        if now >= self.deadline:
            self._settle()

    def forget_wishes(self) -> None:
        """The server that asked is gone; what the daemon still answers is nobody's wish."""
        self._wishes = deque(_granted_to_nobody for _ in self._wishes)
        self._waiting.clear()

    def _settle(self) -> None:
        self.deadline = math.inf
        waiting, self._waiting = self._waiting, []
        for fulfil in waiting:
            self.wish(fulfil)

    def _apply(self) -> None:
        self.folders = self._narrowing.apply(self._approved)
        for path in self._narrowing.outside(self._approved):
            if path not in self._proposed:
                self._proposed.add(path)
                self._out.proposals.append(path)


def _granted_to_nobody(_: float) -> None:
    pass
