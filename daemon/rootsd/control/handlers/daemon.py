"""Handle requests about the daemon as a whole: status, sessions, reload, stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anyio import to_thread

from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.references import is_selected
from rootsd.control.routes import COMMAND_TEXT_LIMIT, RequestContext, Result, Route, query_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.catalog import Catalog, Count
from rootsd.core.labels import first_of, safe_label
from rootsd.core.lasting_changes import opposite
from rootsd.core.model import ActorKind, Project, Verdict
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
from rootsd.wire.projects import Selection

_MAX_CHANGED = 4


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module. The daemon stops after its response."""
    handlers = DaemonHandlers(services)
    return (
        Route(
            StatusQuery,
            handlers.status_for,
            lambda _: None,
            needs_caller=lambda query: query.is_look,
        ),
        query_route(SessionsQuery, handlers.sessions),
        Route(
            ReloadRequest,
            handlers.reload,
            lambda _: None,
            needs_caller=lambda _: True,
            recorded_command=lambda request: request.command,
        ),
        Route(
            AnnounceRequest,
            handlers.announce,
            lambda _: None,
            needs_caller=lambda request: opposite(request.command) is not None,
            recorded_command=lambda request: request.command or "an unnamed command",
        ),
        Route(
            StopRequest,
            handlers.stop,
            lambda _: None,
            services.daemon.stop,
            recorded_command=lambda _: "down",
        ),
    )


def _counts(catalog: Catalog) -> dict[str, int]:
    counts = catalog.counts
    return {
        "published": len(catalog.roots),
        "approved": counts[Count.APPROVED],
        "waiting": counts[Count.PENDING],
        "unpublishable": counts[Count.UNPUBLISHABLE],
        "denied": counts[Count.DENIED],
        "lapsed": counts[Count.LAPSED],
        "lapsed_rules": sum(1 for rule in catalog.rules if rule.verdict is Verdict.PENDING),
        "incomplete": counts[Count.INCOMPLETE],
        "projects": len(catalog.projects),
    }


def _changed_in(catalog: Catalog, project: Project) -> str:
    files = [safe_label(each, limit=None) for each in project.changed_files]
    return f"{safe_label(catalog.name_of(project))}: {first_of(files, _MAX_CHANGED)}"


class DaemonHandlers(Handlers):
    """Handles requests about the daemon as a whole."""

    async def status_for(self, query: StatusQuery, call: RequestContext) -> StatusResult:
        """Return the status. An agent that reads it does not mark refused commands as seen."""
        is_person = call.actor.kind is ActorKind.PERSON
        return await self.status(StatusQuery(is_look=query.is_look and is_person))

    async def status(self, query: StatusQuery) -> StatusResult:
        """Return the status."""
        catalog = self.ledger.catalog
        touched = (each for each in catalog.projects.values() if each.changed_files)  # few
        changed = [each for each in touched if is_selected(catalog, each, Selection.CHANGED)]
        problems = await self.services.daemon.degraded()
        degraded = [*problems, *self.discovery.degraded()]
        if self.ledger.unsaved:
            degraded.append(
                f"the disk refuses {self.ledger.unsaved} changes; they hold until the daemon ends"
            )
        policy = self.services.daemon.policy_status()
        if policy is not None and policy["error"]:
            degraded.append(
                "the policy cannot be used, so nothing is published:"
                f" {policy['error']} ({policy['remedy']})"
            )
        left = await to_thread.run_sync(self.services.daemon.left_behind)
        if query.is_look:
            await to_thread.run_sync(left.mark_seen)
            self.services.daemon.mark_degraded_seen()
        refused, agent_commands = (
            self.services.command_guard.refused.unseen,
            self.services.command_guard.agent_commands.unseen,
        )
        if query.is_look:
            self.services.command_guard.mark_seen()
        return StatusResult(
            revision=self.ledger.revision,
            daemon=self.services.daemon.about(),
            config=self.services.daemon.config_status(),
            policy=policy,
            parents=self.discovery.parent_status(catalog),
            counts={**_counts(catalog), "changed": len(changed)},
            changed_files=[_changed_in(catalog, p) for p in changed[:_MAX_CHANGED]],
            left_behind=[*left.sentences],
            sessions=self.services.daemon.session_items(),
            confined=self.services.wall.wardens.items(),
            closed_connections=self.services.daemon.closed_connections(),
            guard=self.services.command_guard.guard.value,
            focus=self.ledger.focus.tag,
            refused=refused,
            agent_commands=agent_commands,
            degraded=degraded,
            warnings=[],
        )

    async def sessions(self, query: SessionsQuery) -> SessionListing:
        """Return the open sessions, or the last ones."""
        if query.view is SessionView.OPEN:
            items = self.services.daemon.session_items()
        else:
            items = await to_thread.run_sync(self.services.daemon.session_history, query.last)
        return SessionListing(
            revision=self.ledger.revision,
            items=items,
            confined=self.services.wall.wardens.items(),
            warnings=[],
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
        await self.services.daemon.reload(call.actor)
        return await self.status(StatusQuery())

    async def stop(self, _: StopRequest, __: RequestContext) -> Result:
        """Return nothing, because the daemon stops after the response is sent."""
        return {}
