"""The part of the published set that one connection may see, and its subscribers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from msgspec import Struct, field
from msgspec.structs import replace

from rootsd.core import scope as scopes
from rootsd.core.errors import RootsdError
from rootsd.core.model import NO_FOCUS, Focus, PublishedSet
from rootsd.core.scope import FULL_SCOPE, NO_SESSION_START, Scope, SessionStart, UriFilter
from rootsd.core.session_keys import NO_MEMBERSHIP, SessionMembership
from rootsd.core.session_observer import SessionObserver
from rootsd.core.throttle import TokenBucket
from rootsd.core.wall_peers import PeerPlace
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.diff import PublishedDiff, describe_root_changes, diff_published
from rootsd.mcp.serializers import NO_WORKSPACE_PATHS, WorkspacePaths
from rootsd.mcp.source import NO_NAME, RootsSource, requests_per_process
from rootsd.mcp.subscriptions import Subscribers
from rootsd.wire.jsonrpc import INTERNAL_ERROR


class WaitLimits(Struct, frozen=True):
    """How long calls wait for the user's decision, in seconds."""

    default_s: float = 45.0
    """Shorter than the minute after which most clients give up."""
    progress_s: float = 5.0
    """The pause between two progress notifications."""
    max_calls: int = 4
    """How many calls of one connection may wait at a time."""


DEFAULT_WAIT_LIMITS = WaitLimits()
_HOW_TO_RETURN = ' If a removed folder is approved again, its shells need: cd "$PWD"'


class ConnectionView(Struct):
    """The roots that one connection may see: the SDK's "lifespan state" of the connection.

    Every handler reads roots through this object. It applies scope and focus, and nothing else
    does, so no answer can omit them.

    `client` is the peer's name for itself, safe to show. `request_rate` limits its requests for
    folders, and `waiting` counts its calls that wait for a decision. `membership` names the
    sessions of the connection, and `start` its workspace. `initial_focus` is the focus at the time
    when the connection began.
    """

    source: RootsSource
    observer: SessionObserver
    wait_limits: WaitLimits = DEFAULT_WAIT_LIMITS
    subscribers: Subscribers = field(default_factory=Subscribers)
    request_rate: TokenBucket = field(default_factory=requests_per_process)
    membership: SessionMembership = NO_MEMBERSHIP
    client: str = NO_NAME
    waiting: int = 0
    initial_focus: Focus = NO_FOCUS
    start: SessionStart = NO_SESSION_START
    first_scope: Scope = FULL_SCOPE
    """The scope that the connection asked for when it began."""
    current_start: SessionStart | None = None
    """The workspace where the session works now, or None if it never moved."""
    _scope: Scope = FULL_SCOPE
    _first: PublishedSet | None = None
    """Behind a wall, the set when the connection began, until the first tool result."""
    _last_answer: PublishedSet | None = None

    def begin(self, published: PublishedSet) -> None:
        """Note the set at the time when the connection began."""
        self.initial_focus = published.focus
        self._first = published if self._is_behind_wall else None

    @property
    def uris(self) -> UriFilter:
        """The URIs that the connection accepts as MCP roots."""
        return self._scope.uris

    @property
    def start_now(self) -> SessionStart:
        """The start of the session, or of its last move."""
        is_bound = self._scope.folder is not None
        return self._scope.start if is_bound else self.current_start or self.start

    def narrow(self, scope: Scope) -> None:
        """Show only roots in `scope` from now on. Call this before the first answer."""
        self.first_scope = scope
        self.move(scope)

    def move(self, scope: Scope, start: SessionStart | None = None) -> None:
        """Show only roots in `scope` from now on, because the session has moved.

        Without `start`, it is where it began.
        """
        self.current_start = start or self.start
        self._scope = _interned(scope)
        self.observer.scoped(self._scope)

    async def current(self) -> PublishedSet:
        """Return the set to answer from, verified now. Raises MCPError if the daemon fails."""
        try:
            published = await self.source.current()
        except RootsdError as error:
            data = {"reason": error.code.value, "remedy": error.remedy}
            raise MCPError(INTERNAL_ERROR, error.message, data) from error
        scope = self._scope_in(published)
        self.observer.scoped(scope)
        self.observer.roots_sent(published)
        return _cached_narrow(published, scope)

    def workspace(self, answer: PublishedSet) -> WorkspacePaths:
        """Return the roots of `answer` to mark as in the workspace of the session.

        None are marked if the connection sees only these roots.
        """
        return (
            NO_WORKSPACE_PATHS
            if self._scope.narrows_by_folder
            else _workspace_paths(answer, self.current_start or self.start)
        )

    def changes_in(self, answer: PublishedSet) -> str:
        """Return a sentence about the changes since the last tool result; empty for the first.

        Behind a wall, the first one tells, too, which roots are gone since the connection began:
        the client may work in their folders. `answer` is the set behind this result, and counts as
        the last one from now on.
        """
        before, self._last_answer = self._last_answer, answer
        first, self._first = self._first, None
        known = before
        if first is not None:
            known = _cached_narrow(first, self._scope_in(first))
        if known is None or known is answer:
            return ""
        kept = {root.path for root in answer.roots}
        if self._is_behind_wall and any(root.path not in kept for root in known.roots):
            return describe_root_changes(known, answer) + _HOW_TO_RETURN
        return "" if before is None else describe_root_changes(known, answer)

    @property
    def _is_behind_wall(self) -> bool:
        return self.membership.peer.place is PeerPlace.BEHIND_WALL

    def diff(self, before: PublishedSet, after: PublishedSet) -> PublishedDiff:
        """Return the change that this connection sees if the source goes from `before` to
        `after`."""
        return diff_published(
            _cached_narrow(before, self._scope_in(before)),
            _cached_narrow(after, self._scope_in(after)),
            self._scope.uris,
        )

    def _scope_in(self, published: PublishedSet) -> Scope:
        scope = scopes.apply_focus(self._scope, published.focus, self.initial_focus)
        if own := _cached_bound_sessions(published) & self.membership.ids:
            scope = replace(scope, sessions=own)
        return _interned(scope)


@lru_cache(maxsize=1024)
def _interned(scope: Scope) -> Scope:
    """Return the same object for equal scopes, so that their sessions share cached results."""
    return scope


@cached_by_identity(size=8)
def _cached_bound_sessions(published: PublishedSet) -> frozenset[str]:
    return scopes.bound_sessions(published)


@cached_by_identity(size=64)
def _workspace_paths(published: PublishedSet, start: SessionStart) -> WorkspacePaths:
    return scopes.workspace_at_start(published, start) or NO_WORKSPACE_PATHS


@cached_by_identity(size=64)
def _cached_narrow(published: PublishedSet, scope: Scope) -> PublishedSet:
    return scopes.apply_scope(published, scope)


HandlerContext = ServerRequestContext[ConnectionView, Any]
