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
    """What requests are answered with. `note_on` says who asked for a folder, and `requests` knows
    for which session; `real_path(typed, cwd)` touches the disk: called in a thread; `is_plain`
    tells at once that a path needs no such call. `state` is the folder of the decisions."""

    ledger: Ledger
    surveyor: DiscoveryControl
    host: DaemonControl
    chronicle: AuditLogHandlers
    noticing: RouteSource
    note_on: NoteForPath = no_note
    requests: SessionRequests = NO_SESSION_REQUESTS
    facts_of: CollectFacts = no_facts
    origins_of: ReadOrigins = no_origins
    executed_in: FindExecutedFiles = no_executed_files
    real_path: Callable[[str, str], bytes] = real_path
    is_plain: Callable[[bytes], bool] = never_plain
    state: bytes = b"/"


class Dispatcher:
    """Answers control requests."""

    def __init__(self, means: ControlServices) -> None:
        self._entries: Mapping[type[ControlRequest], Route[Any]] = {
            entry.form: entry for entry in _routes(means)
        }

    @property
    def forms(self) -> AbstractSet[type[ControlRequest]]:
        """The kinds of requests that are answered."""
        return self._entries.keys()

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        """The answer to `request`. Raises RootsdError."""
        answer: Result = await self._entries[type(request)].answer(request, call)
        return dict(answer)

    def answered(self, request: ControlRequest) -> None:
        """Told once the answer to `request` is out."""
        self._entries[type(request)].afterwards()

    def asks_who(self, request: ControlRequest) -> bool:
        """Whether the answer to `request`, which is no order, depends on who asks."""
        return self._entries[type(request)].asks_who(request)

    def command_in(self, request: ControlRequest) -> str:
        """Return the command that is recorded where an agent gives it, safe to show, or ""."""
        command = self._entries[type(request)].command_in(request)
        return safe_label(command, COMMAND_TEXT_LIMIT) if command else ""

    def order_in(self, request: ControlRequest) -> GuardedCommand | None:
        """The order that `request` is; None for what only looks, or changes no decision."""
        return self._entries[type(request)].order_in(request)


def _routes(means: ControlServices) -> tuple[Route[Any], ...]:
    ledger, parents, found = means.ledger, means.surveyor.parents, means.real_path
    propose, foresee = means.surveyor.propose, means.surveyor.foresee
    adding = AddHandlers(ledger, found, propose, foresee, parents)
    chooser = ProjectSelector(ledger, found, propose, foresee)
    return (
        *DaemonHandlers(ledger, means.surveyor, means.host, means.chronicle.standing).entries(),
        *DoctorHandlers(ledger, means.surveyor, means.host, means.state).entries(),
        *ProjectHandlers(
            ledger,
            found,
            parents,
            means.note_on,
            means.facts_of,
            means.origins_of,
            means.surveyor.follow,
        ).entries(),
        *ScanHandlers(ledger, means.surveyor, found).entries(),
        *DecisionHandlers(
            ledger,
            chooser,
            parents,
            means.requests,
            means.origins_of,
            means.surveyor.follow,
            means.executed_in,
        ).entries(),
        *adding.entries(),
        *ImportHandlers(ledger, adding, parents).entries(),
        *FocusHandlers(ledger).entries(),
        *NameHandlers(ledger, found, parents).entries(),
        *RuleHandlers(ledger, found, parents).entries(),
        *PathStatusHandlers(ledger, found, parents, means.note_on, means.is_plain).entries(),
        *means.noticing.entries(),
        *means.chronicle.entries(),
        *UndoHandlers(ledger, means.chronicle.gate, means.chronicle.archive, parents).entries(),
    )
