"""Find which decisions in a history can be undone, and what was in force before them.

The decisions about one subject form a stack, and an undo removes the one on top. Grants are not
part of the stack, because rules may grant again after any decision. An undo cannot be undone: a
person who wants the decision back makes it again.

A person means the last command. If undo cannot take that back, it takes back nothing: an earlier
command is undone only by its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from rootsd.core.changes import ChangeVerb
from rootsd.core.errors import CannotUndo
from rootsd.core.history import EventSubject, HistoryEvent
from rootsd.core.labels import safe_label
from rootsd.core.lasting_changes import LASTING, describe_lasting, is_lasting

_NOT_ORDERS = (
    ChangeVerb.REFUSED,
    ChangeVerb.AGENT_COMMAND,
    ChangeVerb.REQUESTED,
    *LASTING,
)


class UndoStep(Struct, frozen=True):
    """A decision to undo: its `event`, the one `before`, and the `last` one about the subject."""

    event: HistoryEvent
    before: HistoryEvent | None
    last: HistoryEvent


def last_undoable_order(events: Sequence[HistoryEvent]) -> tuple[HistoryEvent, ...]:
    """Return the events of the newest order by a person that is not undone, oldest first.

    The events of one order have the same time and are stored together. Raises CannotUndo if a
    change that undo does not take back is newer.
    """
    lasting: HistoryEvent | None = None
    undone: dict[EventSubject, int] = {}
    for at in range(len(events) - 1, -1, -1):
        event = events[at]
        if event.verb is ChangeVerb.UNDONE:
            undone[event.subject] = undone.get(event.subject, 0) + 1
        elif lasting is None and is_lasting(event):
            lasting = event
        elif not _is_order(event):
            continue
        elif undone.get(event.subject, 0):
            undone[event.subject] -= 1
        elif lasting is not None:
            raise _not_the_last(lasting, event)
        else:
            return tuple(_of_one_order(events[: at + 1]))
    if lasting is not None:
        raise _not_the_last(lasting, None)
    return ()


def _not_the_last(lasting: HistoryEvent, order: HistoryEvent | None) -> CannotUndo:
    what, way = describe_lasting(lasting)
    earlier = ""
    if order is not None:
        seq = order.seq
        earlier = f"; to take back {seq} ({order.verb.value}), before it: rootsd undo {seq}"
    return CannotUndo(f"the last {what}, and undo does not take that back{earlier}", way)


def plan_undo(
    targets: Sequence[HistoryEvent], events: Iterable[HistoryEvent]
) -> tuple[UndoStep, ...]:
    """Return the steps that undo `targets`. `events` are all events from the first.

    Raises CannotUndo.
    """
    for target in targets:
        _check_is_order(target)
    wanted = {target.subject: target for target in targets}
    stacks: dict[EventSubject, list[HistoryEvent]] = {subject: [] for subject in wanted}
    last = dict(wanted)
    undone_by: dict[int, int] = {}
    for event in events:
        if (stack := stacks.get(event.subject)) is None:
            continue
        last[event.subject] = event
        if event.verb is ChangeVerb.UNDONE:
            _drop_grants(stack)
            if stack:
                undone_by[stack.pop().seq] = event.seq
        else:
            stack.append(event)
    return tuple(
        UndoStep(target, _before(target, stacks[target.subject], undone_by), last[target.subject])
        for target in targets
    )


def undone_events(events: Iterable[HistoryEvent]) -> dict[int, HistoryEvent]:
    """Return the event that each undo took back, by the number of the undo.

    `events` are all events from the first.
    """
    stacks: dict[EventSubject, list[HistoryEvent]] = {}
    found: dict[int, HistoryEvent] = {}
    for event in events:
        stack = stacks.setdefault(event.subject, [])
        if event.verb is not ChangeVerb.UNDONE:
            stack.append(event)
            continue
        _drop_grants(stack)
        if stack:
            found[event.seq] = stack.pop()
    return found


def _is_order(event: HistoryEvent) -> bool:
    if event.verb in _NOT_ORDERS:
        return False
    actor = event.decided_by()
    return actor is not None and actor.kind.may_decide


def _of_one_order(events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    newest = events[-1]
    order: list[HistoryEvent] = []
    for event in reversed(events):
        if (event.at_ns, event.actor, event.verb) != (newest.at_ns, newest.actor, newest.verb):
            break
        order.append(event)
    return order[::-1]


def _check_is_order(target: HistoryEvent) -> None:
    if target.verb is ChangeVerb.REFUSED:
        raise CannotUndo(f"{target.seq} in the log was refused: it changed nothing", "rootsd log")
    if target.verb in LASTING:
        _, way = describe_lasting(target)
        raise CannotUndo(f"{target.seq} in the log is nothing that undo takes back", way)
    if target.verb is ChangeVerb.POLICY_CHANGED:
        raise CannotUndo(
            f"{target.seq} in the log changed the policy, which belongs to root", "rootsd status"
        )
    if target.verb is ChangeVerb.UNDONE:
        raise CannotUndo(
            f"{target.seq} in the log is an undo, which cannot be undone; decide again",
            "rootsd log",
        )
    if not _is_order(target):
        raise CannotUndo(
            f"{target.seq} in the log ({target.verb.value}) was not decided by a person",
            f"rootsd why {safe_label(target.subject.key, limit=None)}",
        )


def _drop_grants(stack: list[HistoryEvent]) -> None:
    while stack and stack[-1].verb in (ChangeVerb.GRANTED, ChangeVerb.NOTED):
        stack.pop()


def _before(
    target: HistoryEvent, stack: list[HistoryEvent], undone_by: dict[int, int]
) -> HistoryEvent | None:
    if target.seq in undone_by:
        raise CannotUndo(
            f"{target.seq} in the log was undone already, by {undone_by[target.seq]}", "rootsd log"
        )
    _drop_grants(stack)
    top = stack.pop()
    if top.seq != target.seq:
        way = f"rootsd undo {top.seq}" if _is_order(top) else "rootsd log"
        raise CannotUndo(
            f"{target.seq} in the log was replaced by {top.seq} ({top.verb.value})", way
        )
    return stack[-1] if stack else None
