"""Takes decisions back: finds what was before them, and orders that it be so again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rootsd.app.control.gate import Gate
from rootsd.app.control.items import items_of
from rootsd.app.control.register import Entry, Order, order
from rootsd.app.deciding.chronicle import Archive, log_items
from rootsd.app.deciding.ledger import Ledger
from rootsd.core.callers import Guard
from rootsd.core.catalog import Catalog
from rootsd.core.changes import FocusChange, Verb
from rootsd.core.errors import CannotUndo, UnknownRule
from rootsd.core.history import FOCUS, Event, SubjectKind, rule_number
from rootsd.core.inputs import Order as LedgerOrder
from rootsd.core.inputs import Restore, RestoreRule
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor, ActorKind, Rule, Ruling
from rootsd.core.parents import Parent
from rootsd.core.records import Focused, RuledProject
from rootsd.core.undoing import Step, last_order, steps_back
from rootsd.wire.deciding import Effect
from rootsd.wire.undoing import Undo, Undone

# Who wants to undo something older names it by its number.
_LOOKED_THROUGH = 20_000
_MOST_STAKES = 20
_NOBODY = Actor(ActorKind.PERSON)  # of a rehearsal, which leaves nothing behind


class UnknownEvent(UnknownRule):
    """No event of the log has that number."""


@dataclass(frozen=True, slots=True)
class Undoing:
    """Carries out `Undo`."""

    ledger: Ledger
    gate: Gate
    archive: Archive
    parents: Callable[[], Sequence[Parent]]

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Undo, self.undo, self._order_in),)

    async def undo(self, request: Undo, actor: Actor) -> Undone:
        """Take it back, all or nothing. Raises CannotUndo, UnknownEvent, and what stands against
        an approval that would come back."""
        steps = await self.ledger.undisturbed(partial(self._steps, request.seq))
        if request.effect is Effect.DRY_RUN:
            catalog = self.ledger.rehearse(_orders(steps, actor)).catalog
        else:
            catalog = await self._carried_out(steps, actor)
        paths = [s.event.subject.key for s in steps if s.event.subject.kind is SubjectKind.PROJECT]
        known = [catalog.projects[path] for path in paths if path in catalog.projects]
        return Undone(
            revision=self.ledger.revision,
            undone=log_items([step.event for step in steps]),
            items=items_of(catalog, known, self.parents()),
            warnings=[],
        )

    async def _carried_out(self, steps: Sequence[Step], actor: Actor) -> Catalog:
        made = await self.ledger.obey(_orders(steps, actor))
        for step in steps:
            if step.event.subject.kind is SubjectKind.SETTING:
                await self._set_back(step, actor)
        return made.catalog

    async def _set_back(self, step: Step, actor: Actor) -> None:
        before = step.before.outcome() if step.before else None
        if step.event.subject == FOCUS:
            tag = before.tag if isinstance(before, Focused) else None
            note = FocusChange(tag, actor, Verb.UNDONE)
            await self.ledger.refocus(note, lambda focus: focus.changed(tag))
        else:
            guard = before if isinstance(before, Guard) else Guard.AGENTS
            await self.gate.set_guard(guard, actor, Verb.UNDONE)

    def _steps(self, seq: int | None) -> tuple[Step, ...]:
        """In a thread."""
        if seq is None:
            targets = last_order(self.archive.last_events(_LOOKED_THROUGH))
            if not targets:
                raise UnknownEvent("there is nothing to undo", "rootsd log")
        else:
            targets = tuple(self.archive.events(seq - 1, 1)) if seq > 0 else ()
            if not targets:
                raise UnknownEvent(f"there is no event {seq} in the log", "rootsd log")
        return steps_back(targets, self.archive.events())

    def _order_in(self, request: Undo) -> Order | None:
        if request.effect is Effect.DRY_RUN:
            return None
        words = "undo" if request.seq is None else f"undo {request.seq}"
        return Order(words, partial(self._stakes, request))

    async def _stakes(self, request: Undo) -> Sequence[str]:
        """What would be taken back. Raises as `undo` does."""
        would = await self.undo(replace(request, effect=Effect.DRY_RUN), _NOBODY)
        lines = [
            f"undo {item['seq']}: {item['verb']} {safe_label(item['path'] or item['what'], None)}"
            for item in would["undone"]
        ]
        more = len(lines) - _MOST_STAKES
        return [*lines[:_MOST_STAKES], f"and {more} more"] if more > 0 else lines


def _orders(steps: Sequence[Step], actor: Actor) -> list[LedgerOrder]:
    orders: list[LedgerOrder] = []
    for step in steps:
        match step.event.subject.kind:
            case SubjectKind.PROJECT:
                orders.append(_restoring(step, actor))
            case SubjectKind.RULE:
                before = step.before.outcome() if step.before else None
                rule = before if isinstance(before, Rule) else None
                orders.append(RestoreRule(rule_number(step.event.subject), rule, actor))
            case SubjectKind.SETTING:
                pass  # the ledger does not hold it
            case SubjectKind.ATTEMPT | SubjectKind.PARENT:
                raise CannotUndo("this event changed no decision", "rootsd log")
    return orders


def _restoring(step: Step, actor: Actor) -> Restore:
    return Restore(step.event.subject.key, _ruling(step.last), _ruling(step.before), actor)


def _ruling(event: Event | None) -> Ruling:
    outcome = event.outcome() if event else None
    return outcome.ruling if isinstance(outcome, RuledProject) else UNDECIDED
