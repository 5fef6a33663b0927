"""What one connection sees: the published set within its scope, and the listeners it brought."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from rootsd.core import scope as scopes
from rootsd.core.allowance import Allowance
from rootsd.core.errors import RootsdError
from rootsd.core.focus import NO_FOCUS, Focus
from rootsd.core.model import Published
from rootsd.core.scope import EVERYTHING, NO_START, Scope, Start, Uris
from rootsd.core.session_keys import NOBODY, Membership
from rootsd.publish.audience import Audience
from rootsd.publish.changes import changes
from rootsd.publish.difference import Difference, difference
from rootsd.publish.memo import shared
from rootsd.publish.shapes import NOWHERE, Here
from rootsd.publish.source import RootsSource, Witness, requests_of_one_process
from rootsd.wire.jsonrpc import INTERNAL_ERROR


@dataclass(frozen=True, slots=True)
class Patience:
    """How long calls wait for a person's decision, in seconds."""

    usual_s: float = 45.0
    """Below the minute after which most clients give up."""
    progress_s: float = 5.0
    """The pause between two progress notices."""
    calls: int = 4
    """How many calls of one connection may wait at a time."""


DEFAULT_PATIENCE = Patience()


@dataclass(slots=True)
class View:
    """The SDK's "lifespan state" of a connection; every handler reads roots through it alone.

    `client` is what the peer calls itself, safe to show; `requests` how often it may ask for a
    folder, `waiting` how many of its calls wait for a decision. `member` tells which sessions the
    connection belongs to. `start` tells the workspace of the session.
    `begun` is the focus as it was when the connection began. Scope and focus narrow the set here
    and nowhere else, so that no answer can forget them.
    """

    source: RootsSource
    witness: Witness
    patience: Patience = DEFAULT_PATIENCE
    audience: Audience = field(default_factory=Audience)
    requests: Allowance = field(default_factory=requests_of_one_process)
    member: Membership = NOBODY
    client: str = "a client without a name"
    waiting: int = 0
    begun: Focus = NO_FOCUS
    start: Start = NO_START
    _scope: Scope = EVERYTHING
    _witnessed: Scope = EVERYTHING
    _answered: Published | None = None

    @property
    def uris(self) -> Uris:
        """Which URIs the connection takes as MCP roots."""
        return self._scope.uris

    def narrow(self, scope: Scope) -> None:
        """Show what fits `scope` from now on; only before anything was shown."""
        self._scope = _one_of_its_kind(scope)
        self._witness(self._scope)

    async def current(self) -> Published:
        """The set to answer from, verified now. Raises MCPError where the daemon cannot tell."""
        try:
            published = await self.source.current()
        except RootsdError as error:
            data = {"reason": error.code.value, "remedy": error.remedy}
            raise MCPError(INTERNAL_ERROR, error.message, data) from error
        scope = self._scope_in(published)
        self._witness(scope)
        self.witness.given(published)
        return _narrowed(published, scope)

    def workspace(self, answer: Published) -> Here:
        """Return which roots of `answer` to mark: those in the workspace of the session. None are
        where the connection sees only these anyway."""
        return NOWHERE if self._scope.takes_by_folder else _begun_in(answer, self.start)

    def changes_in(self, answer: Published) -> str:
        """Return what changed since the last tool answer, in words; empty for the first answer.

        `answer` is the set that this answer is made from, and counts as the last one from now on.
        """
        before, self._answered = self._answered, answer
        return "" if before is None or before is answer else changes(before, answer)

    def news(self, before: Published, after: Published) -> Difference:
        """What this connection is to be told where the source went from `before` to `after`."""
        return difference(
            _narrowed(before, self._scope_in(before)),
            _narrowed(after, self._scope_in(after)),
            self._scope.uris,
        )

    def _scope_in(self, published: Published) -> Scope:
        tag = published.focus.tag_for(self.begun)
        scope = scopes.focused(self._scope, tag)
        if own := _bound_sessions(published) & self.member.ids:
            scope = replace(scope, sessions=own)
        return _one_of_its_kind(scope)

    def _witness(self, scope: Scope) -> None:
        if scope is not self._witnessed:
            self._witnessed = scope
            self.witness.scoped(scope)


@lru_cache(maxsize=1024)
def _one_of_its_kind(scope: Scope) -> Scope:
    """Equal scopes as one object, so that their sessions share what is computed."""
    return scope


@shared(size=8)
def _bound_sessions(published: Published) -> frozenset[str]:
    return scopes.bound_sessions(published)


@shared(size=64)
def _begun_in(published: Published, start: Start) -> Here:
    return scopes.begun_in(published, start) or NOWHERE


@shared(size=64)
def _narrowed(published: Published, scope: Scope) -> Published:
    return scopes.narrow(published, scope)


Context = ServerRequestContext[View, Any]
