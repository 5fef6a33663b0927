"""Dispatch each control request to the handler that is registered for its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rootsd.control.facts import (
    CollectFacts,
    FindExecutedFiles,
    ReadOrigins,
    no_executed_files,
    no_facts,
    no_origins,
)
from rootsd.control.handlers.add import AddHandlers, ImportHandlers
from rootsd.control.handlers.audit_log import AuditLogHandlers, UndoHandlers
from rootsd.control.handlers.daemon import DaemonControl, DaemonHandlers
from rootsd.control.handlers.decisions import (
    NO_SESSION_REQUESTS,
    DecisionHandlers,
    SessionRequests,
)
from rootsd.control.handlers.doctor import DoctorHandlers
from rootsd.control.handlers.focus import FocusHandlers
from rootsd.control.handlers.names import NameHandlers
from rootsd.control.handlers.path_status import PathStatusHandlers
from rootsd.control.handlers.projects import ProjectHandlers
from rootsd.control.handlers.rules import RuleHandlers
from rootsd.control.handlers.scan import DiscoveryControl, ScanHandlers
from rootsd.control.items import NoteForPath, no_note
from rootsd.control.references import never_plain, real_path
from rootsd.control.routes import (
    COMMAND_TEXT_LIMIT,
    GuardedCommand,
    RequestContext,
    Result,
    Route,
    RouteSource,
)
from rootsd.control.selection import ProjectSelector
from rootsd.core.labels import safe_label
from rootsd.state.ledger import Ledger
from rootsd.wire.request import ControlRequest


@dataclass(frozen=True, slots=True)
class ControlServices:
    """The services that request handlers use.

    `note_on` returns a note about the session that asked for a folder, and `requests` knows that
    session. `real_path(typed, cwd)` reads the disk, so it is called in a thread. `is_plain`
    reports paths that need no such call. `state` is the folder of the store.
    """

    ledger: Ledger
    discovery: DiscoveryControl
    daemon: DaemonControl
    audit_log: AuditLogHandlers
    notifier: RouteSource
    note_on: NoteForPath = no_note
    requests: SessionRequests = NO_SESSION_REQUESTS
    facts_of: CollectFacts = no_facts
    origins_of: ReadOrigins = no_origins
    executed_in: FindExecutedFiles = no_executed_files
    real_path: Callable[[str, str], bytes] = real_path
    is_plain: Callable[[bytes], bool] = never_plain
    state: bytes = b"/"


class Dispatcher:
    """Passes each control request to its handler."""

    def __init__(self, services: ControlServices) -> None:
        self._routes_by_type: Mapping[type[ControlRequest], Route[Any]] = {
            route.request_type: route for route in _routes(services)
        }

    @property
    def request_types(self) -> AbstractSet[type[ControlRequest]]:
        """Return the types of requests that have a handler."""
        return self._routes_by_type.keys()

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        """Return the result of `request`. Raises RootsdError."""
        answer: Result = await self._routes_by_type[type(request)].answer(request, call)
        return dict(answer)

    def finish(self, request: ControlRequest) -> None:
        """Run the follow-up of `request`, after its response was sent."""
        self._routes_by_type[type(request)].afterwards()

    def needs_caller(self, request: ControlRequest) -> bool:
        """Return whether the handler of `request`, a query, needs to know the caller."""
        return self._routes_by_type[type(request)].needs_caller(request)

    def recorded_command(self, request: ControlRequest) -> str:
        """Return the command, safe to print, to record if an agent gives it; empty for none."""
        command = self._routes_by_type[type(request)].recorded_command(request)
        return safe_label(command, COMMAND_TEXT_LIMIT) if command else ""

    def guarded_command(self, request: ControlRequest) -> GuardedCommand | None:
        """Return the command that `request` is, or None if it decides nothing."""
        return self._routes_by_type[type(request)].guarded_command(request)


def _routes(services: ControlServices) -> tuple[Route[Any], ...]:
    ledger, parents, found = services.ledger, services.discovery.parents, services.real_path
    propose, foresee = services.discovery.propose, services.discovery.foresee
    adding = AddHandlers(ledger, found, propose, foresee, parents)
    chooser = ProjectSelector(ledger, found, propose, foresee)
    return (
        *DaemonHandlers(
            ledger, services.discovery, services.daemon, services.audit_log.guard_summary
        ).routes(),
        *DoctorHandlers(ledger, services.discovery, services.daemon, services.state).routes(),
        *ProjectHandlers(
            ledger,
            found,
            parents,
            services.note_on,
            services.facts_of,
            services.origins_of,
            services.discovery.follow,
        ).routes(),
        *ScanHandlers(ledger, services.discovery, found).routes(),
        *DecisionHandlers(
            ledger,
            chooser,
            parents,
            services.requests,
            services.origins_of,
            services.discovery.follow,
            services.executed_in,
        ).routes(),
        *adding.routes(),
        *ImportHandlers(ledger, adding, parents).routes(),
        *FocusHandlers(ledger).routes(),
        *NameHandlers(ledger, found, parents).routes(),
        *RuleHandlers(ledger, found, parents).routes(),
        *PathStatusHandlers(ledger, found, parents, services.note_on, services.is_plain).routes(),
        *services.notifier.routes(),
        *services.audit_log.routes(),
        *UndoHandlers(
            ledger, services.audit_log.command_guard, services.audit_log.archive, parents
        ).routes(),
    )
