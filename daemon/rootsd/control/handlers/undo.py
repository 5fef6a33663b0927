"""Handle undo: take back what the last commands decided.

It looks up the state before the events that it takes back, and orders the ledger to restore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from rootsd.control.confirmation import refuse_unconfirmed_widening
from rootsd.control.handlers.audit_log import log_items
from rootsd.control.routes import (
    DRY_RUN_ACTOR,
    GuardedCommand,
    Route,
    command_route,
    shorten_preview,
)
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.affected import FoundBelow, affected_projects
from rootsd.core.catalog import Catalog
from rootsd.core.changes import ChangeVerb, SettingChange
from rootsd.core.encoding import AllowedPrograms, FocusRecord, ProjectRecord
from rootsd.core.errors import CannotUndo, OrderRefused, UnknownRule
from rootsd.core.guard_setting import Guard
from rootsd.core.history import (
    FOCUS_SUBJECT,
    PROGRAMS_SUBJECT,
    HistoryEvent,
    SubjectKind,
    rule_number,
)
from rootsd.core.inputs import Order as LedgerOrder
from rootsd.core.inputs import ProjectObserved, Restore, RestoreRule
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor, Rule, Ruling
from rootsd.core.undo import UndoStep, last_undoable_order, plan_undo
from rootsd.state.ledger import CheckPlan
from rootsd.wire.guard import (
    UndoRequest,
    UndoResult,
)
from rootsd.wire.request import ApplyMode

# To undo an older event, a person gives its number.
_SEARCH_LIMIT = 20_000


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = UndoHandlers(services)
    return (command_route(UndoRequest, handlers.undo, handlers.guarded_command),)


class UnknownEvent(UnknownRule):
    """There is no event with that number in the log."""


class UndoHandlers(Handlers):
    """Handles `UndoRequest`."""

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
                confirmation = await self.services.gate.confirmation_of(before, would, found)
        else:
            check = refuse_unconfirmed_widening(request.confirmed, found)
            check(before, would)
            for path in unknown:
                await self.discovery.propose(path)
            catalog = await self._carried_out(steps, orders, actor, check)
        paths = [s.event.subject.key for s in steps if s.event.subject.kind is SubjectKind.PROJECT]
        known = [catalog.projects[path] for path in paths if path in catalog.projects]
        result = UndoResult(
            revision=self.ledger.revision,
            undone=log_items([step.event for step in steps]),
            items=self.items(catalog, known),
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
            return [await self.discovery.observe_project(path) for path in paths]
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
        return await self.services.gate.found_below(self.ledger.catalog, approved)

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
            await self.services.command_guard.set_allowed(programs, actor, ChangeVerb.UNDONE)
        else:
            guard = before if isinstance(before, Guard) else Guard.AGENTS
            await self.services.command_guard.set_guard(guard, actor, ChangeVerb.UNDONE)

    def _steps(self, seq: int | None) -> tuple[UndoStep, ...]:
        """Read the store. Call this in a thread."""
        if seq is None:
            targets = last_undoable_order(self.services.archive.last_events(_SEARCH_LIMIT))
            if not targets:
                raise UnknownEvent("there is nothing to undo", "rootsd log")
        else:
            targets = tuple(self.services.archive.events(seq - 1, 1)) if seq > 0 else ()
            if not targets:
                raise UnknownEvent(f"there is no entry {seq} in the log", "rootsd log")
        return plan_undo(targets, self.services.archive.events())

    def guarded_command(self, request: UndoRequest) -> GuardedCommand:
        """Return the command to guard, with a preview."""
        words = "undo" if request.seq is None else f"undo {request.seq}"
        return GuardedCommand(words, partial(self._preview, request))

    async def _preview(self, request: UndoRequest) -> Sequence[str]:
        """Return a line for each event that would be taken back. Raises what `undo` raises."""
        would = await self.undo(replace(request, effect=ApplyMode.DRY_RUN), DRY_RUN_ACTOR)
        return shorten_preview(
            f"undo {item['seq']}: {item['verb']} {safe_label(item['path'] or item['what'], None)}"
            for item in would["undone"]
        )


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
