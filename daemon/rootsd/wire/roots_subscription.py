"""Query the daemon for the roots on `mcp.sock`, and follow their changes. Pure.

This is for programs that may run behind a wall, where there is no other socket: `rootsd run` and
`rootsd.client`. The subscription takes lines and returns bytes and updates. A client of `mcp.sock`
that has sent `roots/list` gets a notification of each change from then on. So a subscription is
one query, and one more query after each notification. After a loss, the next daemon gets the query
again.

The roots are outdated between a notification and the response to the query that follows it. Calls
of the MCP client wait during that time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from rootsd.core.errors import RootsdError
from rootsd.wire import hello
from rootsd.wire.jsonrpc import ErrorResponse, Notification, Request, Response, encode, parse
from rootsd.wire.mcp_messages import ROOTS_CHANGED

_HELLO = 0


Root = TypeVar("Root")


class RootsUpdate(NamedTuple, Generic[Root]):
    """The approved roots.

    `requests` counts the queries of the server that this update answers. `is_current` is false if
    a change was announced after the query; then another update follows. `is_known` is false if no
    daemon has said what is approved; then there are no roots.
    """

    roots: tuple[Root, ...]
    requests: int
    is_current: bool = True
    is_known: bool = True


class RootsSubscription(Generic[Root]):
    """One program's view of the daemon. Pass it each line, and each change of the connection.

    `read` returns the roots in an answer to `roots/list`; none for other values.
    """

    def __init__(self, greeting: hello.Hello, read: Callable[[object], tuple[Root, ...]]) -> None:
        self.useful = False
        """Whether this daemon has answered anything."""
        self.is_outdated = False
        """Whether the last update may no longer be true."""
        self._greeting = greeting
        self._read = read
        self._ids = _HELLO
        self._has_roots = False
        self._current_from_id = _HELLO  # responses to older queries are outdated
        self._queries: deque[tuple[int, int]] = deque()
        self._move: tuple[int, hello.WorkFolders] | None = None  # without an answer yet
        self._unsent_requests = 0
        self._report: bytes = b""

    def connected(self) -> bytes:
        """Return what to tell a daemon that has just been connected."""
        self.useful = False
        self._queries.clear()
        requests, self._unsent_requests = self._unsent_requests, 0
        move = b"" if self._move is None else self.move(self._move[1])
        query = self._query(requests)
        self._current_from_id = self._ids
        return encode(hello.encode_hello(self._greeting, _HELLO)) + move + query + self._report

    def move(self, folders: hello.WorkFolders) -> bytes:
        """Return what tells the daemon where the session works now. A later move replaces it."""
        self._move = id_, _ = self._next_id(), folders
        return encode(hello.encode_move(folders, id_))

    def query(self) -> bytes:
        """Return a query for the roots of this moment."""
        return self._query(1)

    def query_later(self) -> None:
        """Note that the next daemon must be queried, because there is none now."""
        self._unsent_requests += 1

    def connection_lost(self) -> None:
        """Note that the daemon is lost, so that changes go unnoticed from now on."""
        self.is_outdated = self._has_roots
        self._unsent_requests += sum(requests for _, requests in self._queries)
        self._queries.clear()

    def give_up(self) -> RootsUpdate[Root]:
        """Return an update without roots, because no daemon can say what is approved.

        It answers all open queries. A response that comes later still updates the roots.
        """
        requests = self._unsent_requests + sum(requests for _, requests in self._queries)
        self._unsent_requests = 0
        self._queries = deque((id_, 0) for id_, _ in self._queries)
        self.is_outdated = self._has_roots = False
        return RootsUpdate((), requests, is_known=False)

    @property
    def awaits_response(self) -> bool:
        """Whether a query has no response yet."""
        return bool(self._queries)

    def report(self, names: Sequence[str]) -> bytes:
        """Return a report of the roots that the server has, for this daemon and the next ones."""
        self._report = encode(hello.encode_reported_roots(names))
        return self._report

    def take(
        self, line: bytes
    ) -> tuple[RootsUpdate[Root] | hello.MoveResult | RootsdError | None, bytes]:
        """Return the update or the outcome of a move in a line of the daemon, if any, and what to
        send to the daemon.

        Raise hello.ScopeRefused if the daemon would return more roots than the scope allows.
        """
        match parse(line):
            case (Response(id_) | ErrorResponse(id_)) as answer if id_ == _HELLO:
                self.useful = True
                if isinstance(answer, Response):
                    self._greeting = hello.resume_hello(self._greeting, answer.result)
                elif self._greeting.scope.narrows:
                    raise hello.scope_refusal(answer)
            case Notification(method) if method == ROOTS_CHANGED:
                return None, self._query_again()
            case (Response(id_) | ErrorResponse(id_)) as answer if (
                self._move is not None and id_ == self._move[0]
            ):
                self._move = None
                moved = hello.read_move(answer)
                if isinstance(moved, hello.MoveResult) and moved.start is not None:
                    self._greeting = self._greeting._replace(start=moved.start)
                query = self._query_again()
                self.is_outdated = True  # also if there were no roots at the old place
                return moved, query
            case (Response(id_) | ErrorResponse(id_)) as answer if (
                self._queries and id_ == self._queries[0][0]
            ):
                asked, requests = self._queries.popleft()
                # After an error, nothing is known to be approved.
                result = answer.result if isinstance(answer, Response) else None
                roots = self._read(result)
                self._has_roots = bool(roots)
                self.is_outdated = self.is_outdated and asked < self._current_from_id
                is_known = isinstance(answer, Response)
                return RootsUpdate(roots, requests, not self.is_outdated, is_known), b""
            case _:
                pass
        return None, b""

    def _query_again(self) -> bytes:
        query = self._query(0)
        self.is_outdated, self._current_from_id = self._has_roots, self._ids
        return query

    def _query(self, requests: int) -> bytes:
        id_ = self._next_id()
        self._queries.append((id_, requests))
        return encode(Request(id_, "roots/list"))

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids
