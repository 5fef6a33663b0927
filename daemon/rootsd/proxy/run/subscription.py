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
    """The roots as they are now; `requests` is how many questions this answers. `holds` is false
    where news of a change came after the question, so that another answer is on its way."""

    folders: tuple[RootFolder, ...]
    requests: int
    is_current: bool = True


class RootsSubscription:
    """One relay's view of the daemon. Feed it each line, and what the connection does."""

    def __init__(self, greeting: hello.Hello) -> None:
        self.useful = False
        """Whether this daemon has answered anything."""
        self.is_outdated = False
        """Whether what was told last may not hold any more."""
        self._greeting = greeting
        self._ids = _HELLO
        self._has_roots = False  # any root at all
        self._current_from_id = _HELLO  # the question answered_by answer ends the doubt
        self._queries: deque[tuple[int, int]] = deque()
        self._unsent_requests = 0
        self._report: bytes = b""

    def connected(self) -> bytes:
        """A daemon is connected: what to tell it first."""
        self.useful = False
        self._queries.clear()
        requests, self._unsent_requests = self._unsent_requests, 0
        query = self._query(requests)
        self._current_from_id = self._ids
        return encode(hello.encode_hello(self._greeting, _HELLO)) + query + self._report

    def query(self) -> bytes:
        """A server wants to know, and is to be told what is right at this moment."""
        return self._query(1)

    def query_later(self) -> None:
        """The same where there is no daemon: the next one is asked."""
        self._unsent_requests += 1

    def connection_lost(self) -> None:
        """The daemon is lost, and what it would tell of from now on is not heard."""
        self.is_outdated = self._has_roots
        self._unsent_requests += sum(requests for _, requests in self._queries)
        self._queries.clear()

    def give_up(self) -> RootsUpdate:
        """Nobody can tell: then nothing is known to be approved. An answer that comes later is
        heard, and grants nothing any more."""
        requests = self._unsent_requests + sum(requests for _, requests in self._queries)
        self._unsent_requests = 0
        self._queries = deque((id_, 0) for id_, _ in self._queries)
        self.is_outdated = self._has_roots = False
        return RootsUpdate((), requests)

    @property
    def awaits_response(self) -> bool:
        """Whether a daemon owes an answer."""
        return bool(self._queries)

    def report(self, names: Sequence[str]) -> bytes:
        """Say what the server was told, to this daemon and to those after it."""
        self._report = encode(
            hello.encode_reported_roots(hello.ReportedRoots(len(names), tuple(names)))
        )
        return self._report

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
                query = self._query(0)
                self.is_outdated, self._current_from_id = self._has_roots, self._ids
                return None, query
            case (Response(id_) | ErrorResponse(id_)) as answer if (
                self._queries and id_ == self._queries[0][0]
            ):
                asked, requests = self._queries.popleft()
                # Where it cannot tell, nothing is known to be approved.
                result = answer.result if isinstance(answer, Response) else None
                folders = parse_daemon_roots(result)
                self._has_roots = bool(folders)
                self.is_outdated = self.is_outdated and asked < self._current_from_id
                return RootsUpdate(folders, requests, not self.is_outdated), b""
            case _:
                pass
        return None, b""

    def _query(self, requests: int) -> bytes:
        id_ = self._next_id()
        self._queries.append((id_, requests))
        return encode(Request(id_, "roots/list"))

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids
