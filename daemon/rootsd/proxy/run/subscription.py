"""Ask the daemon for the roots and follow their changes. Pure.

Lines in, bytes and events out. A client of `mcp.sock` that asks `roots/list` is told of changes
from then on; nothing else is needed, and a daemon that comes after one that is lost is asked anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from rootsd.proxy.run.roots import RootFolder, parse_daemon_roots
from rootsd.wire import hello
from rootsd.wire.jsonrpc import ErrorResponse, Notification, Request, Response, encode, parse
from rootsd.wire.mcp_messages import ROOTS_CHANGED

_HELLO = 0


class RootsUpdate(NamedTuple):
    """The roots as they are now; `wishes` is how many questions this answers. `holds` is false
    where news of a change came after the question, so that another answer is on its way."""

    folders: tuple[RootFolder, ...]
    wishes: int
    holds: bool = True


class RootsSubscription:
    """One relay's view of the daemon. Feed it each line, and what the connection does."""

    def __init__(self, greeting: hello.Hello) -> None:
        self.useful = False
        """Whether this daemon has answered anything."""
        self.in_doubt = False
        """Whether what was told last may not hold any more."""
        self._greeting = greeting
        self._ids = _HELLO
        self._knows = False  # any root at all
        self._settled_by = _HELLO  # the question whose answer ends the doubt
        self._asked: deque[tuple[int, int]] = deque()
        self._open = 0
        self._told: bytes = b""

    def begin(self) -> bytes:
        """A daemon is connected: what to tell it first."""
        self.useful = False
        self._asked.clear()
        wishes, self._open = self._open, 0
        question = self._question(wishes)
        self._settled_by = self._ids
        return encode(hello.encode_hello(self._greeting, _HELLO)) + question + self._told

    def ask(self) -> bytes:
        """A server wants to know, and is to be told what is right at this moment."""
        return self._question(1)

    def wait(self) -> None:
        """The same where there is no daemon: the next one is asked."""
        self._open += 1

    def lose(self) -> None:
        """The daemon is lost, and what it would tell of from now on is not heard."""
        self.in_doubt = self._knows
        self._open += sum(wishes for _, wishes in self._asked)
        self._asked.clear()

    def give_up(self) -> RootsUpdate:
        """Nobody can tell: then nothing is known to be approved. An answer that comes later is
        heard, and grants nothing any more."""
        wishes = self._open + sum(wishes for _, wishes in self._asked)
        self._open = 0
        self._asked = deque((id_, 0) for id_, _ in self._asked)
        self.in_doubt = self._knows = False
        return RootsUpdate((), wishes)

    @property
    def waits(self) -> bool:
        """Whether a daemon owes an answer."""
        return bool(self._asked)

    def report(self, names: Sequence[str]) -> bytes:
        """Say what the server was told, to this daemon and to those after it."""
        self._told = encode(
            hello.encode_reported_roots(hello.ReportedRoots(len(names), tuple(names)))
        )
        return self._told

    def propose(self, path: str, reason: str) -> bytes:
        """Let the user know of a folder that the client works in."""
        return encode(hello.encode_proposed_folder(path, reason))

    def take(self, line: bytes) -> tuple[RootsUpdate | None, bytes]:
        """Look at a line of the daemon: what it tells, and what to say to it.

        Raises hello.ScopeRefused where it would tell of more than was asked for.
        """
        match parse(line):
            case (Response(id_) | ErrorResponse(id_)) as answer if id_ == _HELLO:
                self.useful = True
                if isinstance(answer, Response):
                    self._greeting = hello.resume_hello(self._greeting, answer.result)
                elif self._greeting.scope.narrows:
                    raise hello.scope_refusal(answer)
            case Notification(method) if method == ROOTS_CHANGED:
                question = self._question(0)
                self.in_doubt, self._settled_by = self._knows, self._ids
                return None, question
            case (Response(id_) | ErrorResponse(id_)) as answer if (
                self._asked and id_ == self._asked[0][0]
            ):
                asked, wishes = self._asked.popleft()
                # Where it cannot tell, nothing is known to be approved.
                result = answer.result if isinstance(answer, Response) else None
                folders = parse_daemon_roots(result)
                self._knows = bool(folders)
                self.in_doubt = self.in_doubt and asked < self._settled_by
                return RootsUpdate(folders, wishes, not self.in_doubt), b""
            case _:
                pass
        return None, b""

    def _question(self, wishes: int) -> bytes:
        id_ = self._next_id()
        self._asked.append((id_, wishes))
        return encode(Request(id_, "roots/list"))

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids
