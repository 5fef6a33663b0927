"""The part of the published set that one connection may see, and its subscribers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext

from rootsd.core import scope as scopes
from rootsd.core.errors import RootsdError
from rootsd.core.model import NO_FOCUS, Focus, PublishedSet
from rootsd.core.scope import FULL_SCOPE, NO_SESSION_START, Scope, SessionStart, UriFilter
from rootsd.core.session_keys import NO_MEMBERSHIP, SessionMembership
from rootsd.core.throttle import TokenBucket
from rootsd.mcp.cache import cached_by_identity
from rootsd.mcp.diff import PublishedDiff, describe_root_changes, diff_published
from rootsd.mcp.serializers import NO_WORKSPACE_PATHS, WorkspacePaths
from rootsd.mcp.source import RootsSource, SessionObserver, requests_per_process
from rootsd.mcp.subscriptions import Subscribers
from rootsd.wire.jsonrpc import INTERNAL_ERROR


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long calls wait for a person's decision, in seconds."""

    usual_s: float = 45.0
    """Below the minute after which most clients give up."""
    progress_s: float = 5.0
    """The pause between two progress notices."""
    calls: int = 4
    """How many calls of one connection may wait at a time."""


DEFAULT_WAIT_LIMITS = WaitLimits()


@dataclass(slots=True)
class ConnectionView:
    """The SDK's "lifespan state" of a connection; every handler reads roots through it alone.

    `client` is what the peer calls itself, safe to show; `requests` how often it may ask for a
    folder, `waiting` how many of its calls wait for a decision. `member` tells which sessions the
    connection belongs to. `start` tells the workspace of the session.
    `begun` is the focus as it was when the connection began. Scope and focus narrow the set here
    and nowhere else, so that no answer can forget them.
    """

    source: RootsSource
    witness: SessionObserver
    patience: WaitLimits = DEFAULT_WAIT_LIMITS
    audience: Subscribers = field(default_factory=Subscribers)
    requests: TokenBucket = field(default_factory=requests_per_process)
    member: SessionMembership = NO_MEMBERSHIP
    client: str = "a client without a name"
    waiting: int = 0
    begun: Focus = NO_FOCUS
    start: SessionStart = NO_SESSION_START
    _scope: Scope = FULL_SCOPE
    _witnessed: Scope = FULL_SCOPE
    _answered: PublishedSet | None = None

    @property
    def uris(self) -> UriFilter:
        """Which URIs the connection takes as MCP roots."""
        return self._scope.uris

    def narrow(self, scope: Scope) -> None:
        """Show what fits `scope` from now on; only before anything was shown."""
        self._scope = _interned(scope)
        self._witness(self._scope)

    async def current(self) -> PublishedSet:
        """The set to answer from, verified now. Raises MCPError where the daemon cannot tell."""
        try:
            published = await self.source.current()
        except RootsdError as error:
            data = {"reason": error.code.value, "remedy": error.remedy}
            raise MCPError(INTERNAL_ERROR, error.message, data) from error
        scope = self._scope_in(published)
        self._witness(scope)
        self.witness.roots_sent(published)
        return _cached_narrow(published, scope)

    def workspace(self, answer: PublishedSet) -> WorkspacePaths:
        """Return which roots of `answer` to mark: those in the workspace of the session. None are
        where the connection sees only these anyway."""
        return (
            NO_WORKSPACE_PATHS
            if self._scope.narrows_by_folder
            else _workspace_paths(answer, self.start)
        )

    def changes_in(self, answer: PublishedSet) -> str:
        """Return what changed since the last tool answer, in words; empty for the first answer.

        `answer` is the set that this answer is made from, and counts as the last one from now on.
        """
        before, self._answered = self._answered, answer
        return "" if before is None or before is answer else describe_root_changes(before, answer)

    def news(self, before: PublishedSet, after: PublishedSet) -> PublishedDiff:
        """What this connection is to be told where the source went from `before` to `after`."""
        return diff_published(
            _cached_narrow(before, self._scope_in(before)),
            _cached_narrow(after, self._scope_in(after)),
            self._scope.uris,
        )

    def _scope_in(self, published: PublishedSet) -> Scope:
        tag = published.focus.tag_for(self.begun)
        scope = scopes.apply_focus(self._scope, tag)
        if own := _cached_bound_sessions(published) & self.member.ids:
            scope = replace(scope, sessions=own)
        return _interned(scope)

    def _witness(self, scope: Scope) -> None:
        if scope is not self._witnessed:
            self._witnessed = scope
            self.witness.scoped(scope)


@lru_cache(maxsize=1024)
def _interned(scope: Scope) -> Scope:
    """Equal scopes as one object, so that their sessions share what is computed."""
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
