"""Handle log, undo, and guard: show the audit log, revert its decisions, set the guard mode.

`undo` looks up the state before the events that it takes back, and orders the ledger to restore
it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from rootsd.control.confirmation import ConfirmationGate, refuse_unconfirmed_widening
from rootsd.control.guard import CommandGuard
from rootsd.control.items import project_items
from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.routes import (
    COMMAND_TEXT_LIMIT,
    GuardedCommand,
    RequestContext,
    Result,
    Route,
    command_route,
    plain_command,
    query_route,
)
from rootsd.control.services import ControlServices
from rootsd.core.affected import FoundBelow, affected_projects
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import AllowedPrograms, FocusRecord, ProjectRecord
from rootsd.core.errors import CallerRefused, CannotUndo, OrderRefused, UnknownRule
from rootsd.core.guard import Guard
from rootsd.core.history import (
    FOCUS_SUBJECT,
    GUARD_SUBJECT,
    PROGRAMS_SUBJECT,
    HistoryEvent,
    SubjectKind,
    rule_number,
)
from rootsd.core.inputs import Order as LedgerOrder
from rootsd.core.inputs import ProjectObserved, Restore, RestoreRule
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor, ActorKind, Parent, Rule, Ruling
from rootsd.core.paths import text_of
from rootsd.core.timestamps import rfc3339
from rootsd.core.undo import UndoStep, last_undoable_order, plan_undo, undone_events
from rootsd.state.ledger import CheckPlan, Ledger
from rootsd.state.store.store import Store
from rootsd.wire.decisions import ApplyMode
from rootsd.wire.guard import (
    MAX_LOG_WAIT_S,
    AllowProgramsRequest,
    DisallowProgramsRequest,
    GuardQuery,
    GuardStatus,
    IntroduceRequest,
    LogItem,
    LogListing,
    LogQuery,
    RemoteCommandRequest,
    SetGuardRequest,
    UndoneEvent,
    UndoRequest,
    UndoResult,
)
from rootsd.wire.request import BadRequest


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    guard, archive = services.command_guard, services.archive
    yield from AuditLogHandlers(services.ledger, guard, archive).routes()
    discovery = services.discovery
    yield from UndoHandlers(
        services.ledger,
        guard,
        archive,
        discovery.parents,
        discovery.propose,
        discovery.observe_project,
        services.gate,
    ).routes()


class AuditLogHandlers(Struct, frozen=True):
    """Handles requests about the audit log and the guard mode."""

    ledger: Ledger
    command_guard: CommandGuard
    archive: Store

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of these handlers."""
        return (
            query_route(LogQuery, self.log),
            query_route(GuardQuery, self.guard),
            command_route(SetGuardRequest, self.set_guard, _guard_command),
            command_route(AllowProgramsRequest, self.allow, _allow_command),
            command_route(DisallowProgramsRequest, self.disallow, _disallow_command),
            query_route(IntroduceRequest, self.introduce),
            Route(
                RemoteCommandRequest,
                self.remote_command,
                _remote_command,
                needs_caller=lambda request: request.effect is ApplyMode.DRY_RUN,
            ),
        )

    async def log(self, query: LogQuery) -> LogListing:
        """Return the last events, or wait for the events after a number."""
        saved = self.ledger.next_save()
        events = await self.ledger.run_exclusively(partial(self._events, query))
        with anyio.move_on_after(min(query.wait_s, MAX_LOG_WAIT_S)):
            while query.after is not None and not events:
                await saved.wait()
                saved = self.ledger.next_save()
                events = await self.ledger.run_exclusively(partial(self._events, query))
        items = await self.ledger.run_exclusively(partial(log_items_from, self.archive, events))
        return LogListing(revision=self.ledger.revision, items=items, warnings=[])

    async def guard(self, _: GuardQuery) -> GuardStatus:
        """Return the guard mode."""
        return self._guard_status(self.command_guard.guard)

    async def set_guard(self, request: SetGuardRequest, actor: Actor) -> GuardStatus:
        """Set the guard mode. Raises what the store raises."""
        if request.effect is ApplyMode.APPLY:
            await self.command_guard.set_guard(request.guard, actor)
        return self._guard_status(request.guard)

    async def allow(self, request: AllowProgramsRequest, actor: Actor) -> GuardStatus:
        """Add programs. Raises BadRequest and what the store raises."""
        allowed = self.command_guard.allowed | set(request.programs)
        if len(allowed) > _MAX_PROGRAMS:
            raise BadRequest(f"{_MAX_PROGRAMS} programs are allowed already", "rootsd guard")
        return await self._set_allowed(allowed, actor, ChangeVerb.PROGRAM_ALLOWED, request.effect)

    async def disallow(self, request: DisallowProgramsRequest, actor: Actor) -> GuardStatus:
        """Take programs back. Raises BadRequest if none is allowed, and what the store raises."""
        gone = self.command_guard.allowed & set(request.programs)
        if not gone:
            raise BadRequest("this program was not allowed by you", "rootsd guard")
        allowed = self.command_guard.allowed - gone
        return await self._set_allowed(
            allowed, actor, ChangeVerb.PROGRAM_DISALLOWED, request.effect
        )

    async def introduce(self, _: IntroduceRequest) -> Result:
        """Return nothing, because the guard has already looked at the caller."""
        return {}

    async def _set_allowed(
        self, allowed: frozenset[str], actor: Actor, verb: ChangeVerb, effect: ApplyMode
    ) -> GuardStatus:
        if effect is ApplyMode.APPLY and allowed != self.command_guard.allowed:
            await self.command_guard.set_allowed(allowed, actor, verb)
        return self._guard_status(self.command_guard.guard)

    async def remote_command(self, request: RemoteCommandRequest, call: RequestContext) -> Result:
        """Return nothing, because the guard has already admitted a command that decides.

        Raises CallerRefused for any other command, if the guard would refuse one that decides:
        the other machine cannot see the caller, and so could not tell an agent from a person.
        """
        if call.actor.kind is ActorKind.CALLER:
            raise CallerRefused(
                "this is refused, since the guard would not let this program decide here",
                "run it yourself, in your own terminal",
            )
        if request.effect is ApplyMode.APPLY:
            command = safe_label(request.command, COMMAND_TEXT_LIMIT)
            await note_plain_commands(self.ledger, [command], call.actor)
        return {}

    def _events(self, query: LogQuery) -> Sequence[HistoryEvent]:
        """Read the store. Call this in a thread."""
        if query.after is None:
            return self.archive.last_events(max(0, query.last))
        return self.archive.events(max(0, query.after), max(0, query.last))

    def _guard_status(self, guard: Guard) -> GuardStatus:
        return GuardStatus(
            revision=self.ledger.revision,
            guard=guard.value,
            allowed=sorted(self.command_guard.allowed),
            last=self.command_guard.last,
            warnings=[],
        )


def _guard_command(request: SetGuardRequest) -> GuardedCommand | None:
    if request.effect is ApplyMode.DRY_RUN:
        return None
    return plain_command(f"guard {request.guard.value}")


def _allow_command(request: AllowProgramsRequest) -> GuardedCommand | None:
    if request.effect is ApplyMode.DRY_RUN:
        return None
    return plain_command(f"guard allow {' '.join(request.programs)}")


def _disallow_command(request: DisallowProgramsRequest) -> GuardedCommand | None:
    if request.effect is ApplyMode.DRY_RUN:
        return None
    return plain_command(f"guard disallow {' '.join(request.programs)}")


def _remote_command(request: RemoteCommandRequest) -> GuardedCommand | None:
    return None if request.effect is ApplyMode.DRY_RUN else plain_command(request.command)


def log_items_from(archive: Store, events: Sequence[HistoryEvent]) -> list[LogItem]:
    """Return `events` as items, each undo with the event that it undid. Call in a thread."""
    has_undone = any(event.verb is ChangeVerb.UNDONE for event in events)
    return log_items(events, undone_events(archive.events()) if has_undone else {})


def log_items(
    events: Sequence[HistoryEvent], undid: Mapping[int, HistoryEvent] = MappingProxyType({})
) -> list[LogItem]:
    """Return `events` as items. `undid` maps the number of an undo to the event that it undid."""
    return [_log_item(event, undid.get(event.seq)) for event in events]


def _log_item(event: HistoryEvent, undid: HistoryEvent | None) -> LogItem:
    actor = event.decided_by()
    path, encoded = _path(event)
    return LogItem(
        seq=event.seq,
        at=rfc3339(event.at),
        verb=event.verb.value,
        actor=actor.kind.value if actor else None,
        by=_by(event, actor),
        path=path,
        path_b64=encoded,
        what=_what(event),
        undid=UndoneEvent(seq=undid.seq, verb=undid.verb.value) if undid else None,
    )


_EDITED = {
    SubjectKind.PARENT: "the configuration file was edited",
    SubjectKind.CONFIGURATION: "the configuration file was edited",
    SubjectKind.POLICY: "the policy file was edited",
}


def _by(event: HistoryEvent, actor: Actor | None) -> str | None:
    if actor is None:
        return _EDITED.get(event.subject.kind)
    return actor.detail or None


def _path(event: HistoryEvent) -> tuple[str | None, str | None]:
    if event.subject.kind not in (SubjectKind.PROJECT, SubjectKind.PARENT):
        return None, None
    try:
        return event.subject.key.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(event.subject.key).decode("ascii")


def _conditions(ruling: Ruling) -> str:
    """Return what is special about a decision, in parentheses, or nothing."""
    decision = ruling.decision
    if decision is None:
        return ""
    words = []
    if decision.session is not None:
        words.append(f"{decision.access.value}, for the session of {decision.session.label}")
    if decision.shared_git is not None:
        words.append("with the Git directory of its checkout")
    return f" ({'; '.join(words)})" if words else ""


def _what(event: HistoryEvent) -> str:
    match event.outcome():
        case ProjectRecord(ruling=ruling) if ruling.name:
            return safe_label(ruling.name) + _conditions(ruling)
        case Rule(number=number, pattern=pattern) if event.verb in (
            ChangeVerb.LAPSED,
            ChangeVerb.APPROVED,
        ):
            return f"rule {number} {safe_label(pattern, limit=None)}"
        case Rule(verdict=verdict, pattern=pattern):
            return f"{verdict.value} {safe_label(pattern, limit=None)}"
        case Guard() as guard:
            return guard.value
        case AllowedPrograms(programs=programs):
            return ", ".join(safe_label(each, limit=None) for each in sorted(programs))
        case FocusRecord(tag=str() as tag):
            return safe_label(tag)
        case _:
            pass
    if event.subject.kind is SubjectKind.SETTING:
        return "the usual" if event.subject == GUARD_SUBJECT else "none"
    return safe_label(text_of(event.subject.key), limit=None)


_MAX_PROGRAMS = 1000
# To undo an older event, a person gives its number.
_SEARCH_LIMIT = 20_000
_MAX_PREVIEW_LINES = 20
_DRY_RUN_ACTOR = Actor(ActorKind.PERSON)  # for a dry run, which changes nothing


class UnknownEvent(UnknownRule):
    """There is no event with that number in the log."""


class UndoHandlers(Struct, frozen=True):
    """Handles `UndoRequest`. `propose` and `observe_project` are those of `ProjectSelector`."""

    ledger: Ledger
    command_guard: CommandGuard
    archive: Store
    parents: Callable[[], Sequence[Parent]]
    propose: Callable[[bytes], Awaitable[None]]
    observe_project: Callable[[bytes], Awaitable[ProjectObserved]]
    gate: ConfirmationGate

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of these handlers."""
        return (command_route(UndoRequest, self.undo, self._guarded_command),)

    async def undo(self, request: UndoRequest, actor: Actor) -> UndoResult:
        """Take events back, all or none.

        Raises CannotUndo, UnknownEvent, Unconfirmed, or the error that refuses an approval that it
        would restore.
        """
        steps = await self.ledger.run_exclusively(partial(self._steps, request.seq))
        confirmation = None
        orders = _undo_orders(steps, actor)
        # The decision to restore may be about a folder that was forgotten with that decision.
        unknown = [o.path for o in orders if isinstance(o, Restore) and self._is_unknown(o)]
        seen = await self._seen(unknown, steps)
        found = await self._found_below(seen, orders)
        before, would = self.ledger.catalog, self.ledger.dry_run([*seen, *orders])
        if request.effect is ApplyMode.DRY_RUN:
            catalog = would.catalog
            if affected_projects(before, would, found).are_wider:
                confirmation = await self.gate.confirmation_of(before, would, found)
        else:
            check = refuse_unconfirmed_widening(request.confirmed, found)
            check(before, would)
            for path in unknown:
                await self.propose(path)
            catalog = await self._carried_out(steps, orders, actor, check)
        paths = [s.event.subject.key for s in steps if s.event.subject.kind is SubjectKind.PROJECT]
        known = [catalog.projects[path] for path in paths if path in catalog.projects]
        result = UndoResult(
            revision=self.ledger.revision,
            undone=log_items([step.event for step in steps]),
            items=project_items(catalog, known, self.parents()),
            warnings=[],
        )
        if confirmation is not None:
            result["confirmation"] = confirmation
        return result

    async def _seen(
        self, paths: Sequence[bytes], steps: Sequence[UndoStep]
    ) -> list[ProjectObserved]:
        """Observe the folders of forgotten decisions. Raises CannotUndo if one of them is gone."""
        try:
            return [await self.observe_project(path) for path in paths]
        except OrderRefused as error:
            last = steps[-1].event
            raise CannotUndo(
                f"{last.seq} in the log ({last.verb.value}) cannot be taken back: {error.message};"
                " an earlier entry is taken back by its number",
                "rootsd log",
            ) from error

    async def _found_below(
        self, seen: Sequence[ProjectObserved], orders: Sequence[LedgerOrder]
    ) -> FoundBelow:
        """Return what the approvals that `orders` restore show that the catalog does not have."""
        projects = self.ledger.dry_run([*seen, *orders]).catalog.projects
        paths = (order.path for order in orders if isinstance(order, Restore))
        approved = (projects[p] for p in paths if p in projects and projects[p].ruling.approves)
        return await self.gate.found_below(self.ledger.catalog, approved)

    def _is_unknown(self, order: Restore) -> bool:
        return order.ruling != UNDECIDED and order.path not in self.ledger.catalog.projects

    async def _carried_out(
        self,
        steps: Sequence[UndoStep],
        orders: Sequence[LedgerOrder],
        actor: Actor,
        check: CheckPlan,
    ) -> Catalog:
        made = await self.ledger.execute(orders, check=check)
        for step in steps:
            if step.event.subject.kind is SubjectKind.SETTING:
                await self._set_back(step, actor)
        return made.catalog

    async def _set_back(self, step: UndoStep, actor: Actor) -> None:
        before = step.before.outcome() if step.before else None
        if step.event.subject == FOCUS_SUBJECT:
            tag = before.tag if isinstance(before, FocusRecord) else None
            note = SettingChange(FocusRecord(tag), actor, ChangeVerb.UNDONE)
            await self.ledger.change_focus(note, lambda focus: focus.for_new_sessions(tag))
        elif step.event.subject == PROGRAMS_SUBJECT:
            programs = before.programs if isinstance(before, AllowedPrograms) else frozenset()
            await self.command_guard.set_allowed(programs, actor, ChangeVerb.UNDONE)
        else:
            guard = before if isinstance(before, Guard) else Guard.AGENTS
            await self.command_guard.set_guard(guard, actor, ChangeVerb.UNDONE)

    def _steps(self, seq: int | None) -> tuple[UndoStep, ...]:
        """Read the store. Call this in a thread."""
        if seq is None:
            targets = last_undoable_order(self.archive.last_events(_SEARCH_LIMIT))
            if not targets:
                raise UnknownEvent("there is nothing to undo", "rootsd log")
        else:
            targets = tuple(self.archive.events(seq - 1, 1)) if seq > 0 else ()
            if not targets:
                raise UnknownEvent(f"there is no event {seq} in the log", "rootsd log")
        return plan_undo(targets, self.archive.events())

    def _guarded_command(self, request: UndoRequest) -> GuardedCommand | None:
        if request.effect is ApplyMode.DRY_RUN:
            return None
        words = "undo" if request.seq is None else f"undo {request.seq}"
        return GuardedCommand(words, partial(self._preview, request))

    async def _preview(self, request: UndoRequest) -> Sequence[str]:
        """Return a line for each event that would be taken back. Raises what `undo` raises."""
        would = await self.undo(replace(request, effect=ApplyMode.DRY_RUN), _DRY_RUN_ACTOR)
        lines = [
            f"undo {item['seq']}: {item['verb']} {safe_label(item['path'] or item['what'], None)}"
            for item in would["undone"]
        ]
        more = len(lines) - _MAX_PREVIEW_LINES
        return [*lines[:_MAX_PREVIEW_LINES], f"and {more} more"] if more > 0 else lines


def _undo_orders(steps: Sequence[UndoStep], actor: Actor) -> list[LedgerOrder]:
    orders: list[LedgerOrder] = []
    for step in steps:
        match step.event.subject.kind:
            case SubjectKind.PROJECT:
                orders.append(_restore_order(step, actor))
            case SubjectKind.RULE:
                before = step.before.outcome() if step.before else None
                rule = before if isinstance(before, Rule) else None
                orders.append(RestoreRule(rule_number(step.event.subject), rule, actor))
            case SubjectKind.SETTING:
                pass  # the ledger does not hold settings
            case _:
                raise CannotUndo("this event changed no decision", "rootsd log")
    return orders


def _restore_order(step: UndoStep, actor: Actor) -> Restore:
    return Restore(
        step.event.subject.key, _ruling_after(step.last), _ruling_after(step.before), actor
    )


def _ruling_after(event: HistoryEvent | None) -> Ruling:
    outcome = event.outcome() if event else None
    return outcome.ruling if isinstance(outcome, ProjectRecord) else UNDECIDED
