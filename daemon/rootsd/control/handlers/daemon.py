"""Handle requests about the daemon as a whole: status, sessions, reload, stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from anyio import to_thread

from rootsd.control.handlers.scan import DiscoveryControl
from rootsd.control.routes import RequestContext, Result, Route, query_route
from rootsd.core.guard import Guard
from rootsd.core.model import Actor, ActorKind, Verdict
from rootsd.state.ledger import Ledger
from rootsd.wire.daemon import (
    AnnounceRequest,
    ConfigStatus,
    DaemonStatus,
    ReloadRequest,
    SessionItem,
    SessionListing,
    SessionsQuery,
    SessionStatus,
    SessionView,
    StatusQuery,
    StatusResult,
    StopRequest,
)
from rootsd.wire.guard import RefusedStatus


class DaemonControl(Protocol):
    """The running daemon, as requests need it."""

    def about(self) -> DaemonStatus:
        """Version, pid, start, confinement."""

    def config_status(self) -> ConfigStatus:
        """The configuration in force."""

    def sessions(self) -> list[SessionStatus]:
        """The MCP connections."""

    def session_items(self) -> list[SessionItem]:
        """The MCP connections, with what each was given last."""

    def session_history(self, last: int) -> list[SessionItem]:
        """The `last` sessions that began, and what each was given; called in a thread."""

    def closed_connections(self) -> dict[str, int]:
        """How many connections were closed from this side, by the reason in words."""

    def degraded(self, *, is_look: bool) -> list[str]:
        """What does not work as it should, a sentence each; with `is_look` a person is shown it
        now."""

    async def reload(self, actor: Actor | None = None) -> None:
        """Read the configuration again, on the command of `actor`. Raises BadConfig, and then the
        old one stays."""

    def stop(self) -> None:
        """End the daemon."""


@dataclass(frozen=True, slots=True)
class GuardSummary:
    """Who may decide, and what agents tried and did since a person looked."""

    guard: Guard
    refused: RefusedStatus | None
    agent_commands: RefusedStatus | None


class GuardSummarySource(Protocol):
    """How the guard stands."""

    def __call__(self, *, is_look: bool) -> GuardSummary:
        """Return it; with `is_look`, a person is shown it now."""


@dataclass(frozen=True, slots=True)
class DaemonHandlers:
    """Answers what is asked about the daemon as a whole."""

    ledger: Ledger
    surveyor: DiscoveryControl
    host: DaemonControl
    standing: GuardSummarySource

    def entries(self) -> Iterable[Route[Any]]:
        """What is answered here. A daemon that is told to stop answers first."""
        return (
            Route(
                StatusQuery, self.tell_status, lambda _: None, asks_who=lambda query: query.is_look
            ),
            query_route(SessionsQuery, self.sessions),
            Route(
                ReloadRequest,
                self.reload,
                lambda _: None,
                asks_who=lambda _: True,
                command_in=lambda request: request.command,
            ),
            Route(
                AnnounceRequest,
                self.announced,
                lambda _: None,
                command_in=lambda request: request.command or "an unnamed command",
            ),
            Route(
                StopRequest, self.stop, lambda _: None, self.host.stop, command_in=lambda _: "down"
            ),
        )

    async def tell_status(self, query: StatusQuery, call: RequestContext) -> StatusResult:
        """How all stands; an agent that looks does not make what was refused to it old news."""
        is_person = call.actor.kind is ActorKind.PERSON
        return await self.status(StatusQuery(is_look=query.is_look and is_person))

    async def status(self, query: StatusQuery) -> StatusResult:
        """How all stands."""
        catalog = self.ledger.catalog
        counts = Counter(j.verdict.value for j in catalog.judgments.values())
        waiting = sum(1 for p in catalog.projects.values() if catalog.is_pending(p))
        unpublishable = sum(1 for p in catalog.projects.values() if catalog.is_unpublishable(p))
        lapsed = sum(1 for p in catalog.projects.values() if p.ruling.is_lapsed)
        lapsed_rules = sum(1 for rule in catalog.rules if rule.verdict is Verdict.PENDING)
        incomplete = sum(1 for p in catalog.projects.values() if p.observed.incomplete)
        degraded = [*self.host.degraded(is_look=query.is_look), *self.surveyor.degraded()]
        if self.ledger.unsaved:
            degraded.append(
                f"the disk refuses {self.ledger.unsaved} changes; they hold until the daemon ends"
            )
        standing = self.standing(is_look=query.is_look)
        return StatusResult(
            revision=self.ledger.revision,
            daemon=self.host.about(),
            config=self.host.config_status(),
            parents=self.surveyor.parent_status(catalog),
            counts={
                "published": len(catalog.roots),
                "approved": counts["approved"],
                "waiting": waiting,
                "unpublishable": unpublishable,
                "denied": counts["denied"],
                "lapsed": lapsed,
                "lapsed_rules": lapsed_rules,
                "incomplete": incomplete,
                "projects": len(catalog.projects),
            },
            sessions=self.host.sessions(),
            closed_connections=self.host.closed_connections(),
            guard=standing.guard.value,
            refused=standing.refused,
            agent_commands=standing.agent_commands,
            degraded=degraded,
            warnings=[],
        )

    async def sessions(self, query: SessionsQuery) -> SessionListing:
        """The sessions that are open, or the last ones."""
        if query.view is SessionView.OPEN:
            items = self.host.session_items()
        else:
            items = await to_thread.run_sync(self.host.session_history, query.last)
        return SessionListing(revision=self.ledger.revision, items=items, warnings=[])

    async def announced(self, _: AnnounceRequest, __: RequestContext) -> Result:
        """Answer nothing: the guard has recorded it."""
        return {}

    async def reload(self, _: ReloadRequest, call: RequestContext) -> StatusResult:
        """Read the configuration again. Raises BadConfig."""
        await self.host.reload(call.actor)
        return await self.status(StatusQuery())

    async def stop(self, _: StopRequest, __: RequestContext) -> Result:
        """Nothing: the daemon ends once that is told."""
        return {}
