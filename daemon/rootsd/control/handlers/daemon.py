"""Handle requests about the daemon as a whole: status, sessions, reload, stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from anyio import to_thread
from msgspec import Struct

from rootsd.control.daemon_parts import DaemonControl, DiscoveryControl
from rootsd.control.guard import CommandGuard
from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.routes import COMMAND_TEXT_LIMIT, RequestContext, Result, Route, query_route
from rootsd.control.services import ControlServices
from rootsd.control.wardens import WardenRegistry
from rootsd.core.labels import safe_label
from rootsd.core.lasting_changes import opposite
from rootsd.core.model import ActorKind, Verdict
from rootsd.state.ledger import Ledger
from rootsd.wire.daemon import (
    AnnounceRequest,
    ReloadRequest,
    SessionListing,
    SessionsQuery,
    SessionView,
    StatusQuery,
    StatusResult,
    StopRequest,
)


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    guard, wardens = services.command_guard, services.wall.wardens
    return DaemonHandlers(
        services.ledger, services.discovery, services.daemon, guard, wardens
    ).routes()


class DaemonHandlers(Struct, frozen=True):
    """Handles requests about the daemon as a whole."""

    ledger: Ledger
    discovery: DiscoveryControl
    daemon: DaemonControl
    guard: CommandGuard
    wardens: WardenRegistry

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of these handlers. The daemon stops after its response."""
        return (
            Route(
                StatusQuery,
                self.status_for,
                lambda _: None,
                needs_caller=lambda query: query.is_look,
            ),
            query_route(SessionsQuery, self.sessions),
            Route(
                ReloadRequest,
                self.reload,
                lambda _: None,
                needs_caller=lambda _: True,
                recorded_command=lambda request: request.command,
            ),
            Route(
                AnnounceRequest,
                self.announce,
                lambda _: None,
                needs_caller=lambda request: opposite(request.command) is not None,
                recorded_command=lambda request: request.command or "an unnamed command",
            ),
            Route(
                StopRequest,
                self.stop,
                lambda _: None,
                self.daemon.stop,
                recorded_command=lambda _: "down",
            ),
        )

    async def status_for(self, query: StatusQuery, call: RequestContext) -> StatusResult:
        """Return the status. An agent that reads it does not mark refused commands as seen."""
        is_person = call.actor.kind is ActorKind.PERSON
        return await self.status(StatusQuery(is_look=query.is_look and is_person))

    async def status(self, query: StatusQuery) -> StatusResult:
        """Return the status."""
        catalog = self.ledger.catalog
        counts = Counter(j.verdict.value for j in catalog.judgments.values())
        unpublishable = sum(1 for p in catalog.projects.values() if catalog.is_unpublishable(p))
        lapsed = sum(1 for p in catalog.projects.values() if p.ruling.is_lapsed)
        lapsed_rules = sum(1 for rule in catalog.rules if rule.verdict is Verdict.PENDING)
        incomplete = sum(1 for p in catalog.projects.values() if p.observed.incomplete)
        problems = await self.daemon.degraded()
        degraded = [*problems, *self.discovery.degraded()]
        if self.ledger.unsaved:
            degraded.append(
                f"the disk refuses {self.ledger.unsaved} changes; they hold until the daemon ends"
            )
        policy = self.daemon.policy_status()
        if policy is not None and policy["error"]:
            degraded.append(
                "the policy cannot be used, so nothing is published:"
                f" {policy['error']} ({policy['remedy']})"
            )
        left = await to_thread.run_sync(self.daemon.left_behind)
        degraded += left.sentences
        if query.is_look:
            await to_thread.run_sync(left.mark_seen)
            self.daemon.mark_degraded_seen()
        refused, agent_commands = self.guard.refused.unseen, self.guard.agent_commands.unseen
        if query.is_look:
            self.guard.mark_seen()
        return StatusResult(
            revision=self.ledger.revision,
            daemon=self.daemon.about(),
            config=self.daemon.config_status(),
            policy=policy,
            parents=self.discovery.parent_status(catalog),
            counts={
                "published": len(catalog.roots),
                "approved": counts["approved"],
                "waiting": catalog.pending_count,
                "unpublishable": unpublishable,
                "denied": counts["denied"],
                "lapsed": lapsed,
                "lapsed_rules": lapsed_rules,
                "incomplete": incomplete,
                "projects": len(catalog.projects),
            },
            sessions=self.daemon.sessions(),
            confined=self.wardens.items(),
            closed_connections=self.daemon.closed_connections(),
            guard=self.guard.guard.value,
            focus=self.ledger.focus.tag,
            refused=refused,
            agent_commands=agent_commands,
            degraded=degraded,
            warnings=[],
        )

    async def sessions(self, query: SessionsQuery) -> SessionListing:
        """Return the open sessions, or the last ones."""
        if query.view is SessionView.OPEN:
            items = self.daemon.session_items()
        else:
            items = await to_thread.run_sync(self.daemon.session_history, query.last)
        return SessionListing(
            revision=self.ledger.revision, items=items, confined=self.wardens.items(), warnings=[]
        )

    async def announce(self, request: AnnounceRequest, call: RequestContext) -> Result:
        """Record a person's command that lasts. The guard has already recorded one of an agent."""
        if opposite(request.command) is not None:
            await note_plain_commands(
                self.ledger, [safe_label(request.command, COMMAND_TEXT_LIMIT)], call.actor
            )
        return {}

    async def reload(self, _: ReloadRequest, call: RequestContext) -> StatusResult:
        """Read the configuration again. Raises BadConfig."""
        await self.daemon.reload(call.actor)
        return await self.status(StatusQuery())

    async def stop(self, _: StopRequest, __: RequestContext) -> Result:
        """Return nothing, because the daemon stops after the response is sent."""
        return {}
