"""Approve from the command line: plan, show the plan, ask for a key, and send.

An approval can publish more than its words name: a glob or `--all` covers many projects, and a
main checkout has worktrees. On a terminal, a person sees the plan and confirms it with one key.
The order that is then sent names exactly the worktrees that were shown, by their identities.
Without a terminal, the named projects are published without a question. Worktrees that are older
than the approval are published only after a key, or with `--worktrees`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Protocol

from rootsd.cli.decisions import confirmable_worktrees, print_result
from rootsd.cli.formatting import path_of, pluralize, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.wire.decisions import ApplyMode, DecideRequest
from rootsd.wire.projects import Selection

BULK_THRESHOLD = 10
_MOST_LINES = 20
_GLOB = frozenset("*?[")
_UNDO = "rootsd undo takes this back."

Item = Mapping[str, Any]


class ConfirmationPrompt(Protocol):
    """A person who can be asked."""

    def is_there(self) -> bool:
        """Return whether the person can be asked."""

    def press(self, question: str) -> str:
        """Return one key."""


class ExistingWorktrees(Enum):
    """What to do with the worktrees that existed before the approval."""

    ASK = auto()
    PUBLISH = auto()


class KeyPolicy(Enum):
    """Whether to ask a person for a key."""

    IF_THERE = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Confirmation:
    """How an approval is confirmed."""

    prompt: ConfirmationPrompt
    existing_worktrees: ExistingWorktrees = ExistingWorktrees.ASK
    key: KeyPolicy = KeyPolicy.IF_THERE

    def asks(self, invocation: Invocation) -> bool:
        """Return whether a key can be asked for."""
        flags = invocation.flags
        return self.key is KeyPolicy.IF_THERE and not flags.no_input and self.prompt.is_there()


def confirm_and_send(
    invocation: Invocation, order: DecideRequest, confirmation: Confirmation
) -> int:
    """Ask for confirmation if the approval needs it, send it, and return the exit status."""
    if order.effect is ApplyMode.DRY_RUN:
        print_result(invocation, order, invocation.call(order))
        return Exit.OK
    asks = confirmation.asks(invocation)
    plan: dict[str, Any] | None = None
    if asks or confirmation.existing_worktrees is ExistingWorktrees.PUBLISH:
        plan = _planned(invocation, order)
    if plan is not None:
        trees = confirmable_worktrees(plan)
        if asks and (trees or _is_bulk(order, plan)):
            chosen = _ask(confirmation.prompt, order, plan, trees)
            if chosen is None:
                invocation.output.message("Nothing was published.")
                return Exit.FAILED
            trees = chosen
        order = _with_worktrees(order, trees)
    decided = invocation.call(order)
    print_result(invocation, order, decided)
    if _is_open_ended(order) and decided["items"]:
        invocation.output.message(_UNDO)
    if plan is None and (trees := confirmable_worktrees(decided)):
        return _publish_older(invocation, order, decided, trees, confirmation)
    return Exit.OK


def _publish_older(
    invocation: Invocation,
    order: DecideRequest,
    decided: Mapping[str, Any],
    trees: Sequence[Item],
    confirmation: Confirmation,
) -> int:
    """Handle the existing worktrees of a folder that was unknown before its approval."""
    if confirmation.existing_worktrees is ExistingWorktrees.ASK:
        if not confirmation.asks(invocation):
            return Exit.OK
        chosen = _ask(confirmation.prompt, order, {**decided, "items": ()}, trees)
        if not chosen:
            return Exit.OK
    again = _with_worktrees(order, trees)
    print_result(invocation, again, invocation.call(again))
    return Exit.OK


def _planned(invocation: Invocation, order: DecideRequest) -> dict[str, Any] | None:
    """Return the effect that the order would have; None for an unknown folder."""
    try:
        return invocation.call(replace(order, effect=ApplyMode.DRY_RUN))
    except RootsdError as error:
        # The order itself adds the unknown folder, or fails with the right error.
        if error.code is ErrorCode.NOTHING_MATCHED:
            return None
        raise


def _with_worktrees(order: DecideRequest, trees: Sequence[Item]) -> DecideRequest:
    return replace(
        order,
        worktrees=tuple(tree["id"] for tree in trees),
        worktrees_shown=tuple(tree["identity"] for tree in trees),
    )


def _is_open_ended(order: DecideRequest) -> bool:
    """Return whether the order may cover projects that it does not name."""
    is_glob = any(not _GLOB.isdisjoint(reference) for reference in order.refs)
    return order.select is not Selection.NAMED or is_glob


def _is_bulk(order: DecideRequest, plan: Mapping[str, Any]) -> bool:
    is_risky = len(plan["items"]) > BULK_THRESHOLD or bool(plan.get("executed"))
    return _is_open_ended(order) and is_risky


def _ask(
    prompt: ConfirmationPrompt,
    order: DecideRequest,
    plan: Mapping[str, Any],
    trees: Sequence[Item],
) -> Sequence[Item] | None:
    """Show the plan and ask; return the worktrees to publish, or None to publish nothing."""
    if _is_bulk(order, plan):
        _show_bulk(plan)
    if trees:
        _write("These worktrees are older than this approval. Clients would see them, too:")
        _write_some([_place(tree) for tree in trees])
    is_alone = not plan["items"]
    what = _what(plan["items"], trees)
    keys = "y,p,n" if trees and not is_alone else "y,n"
    while True:
        match prompt.press(f"Publish {what}? [{keys}] "):
            case "y":
                return trees
            case "p" if trees and not is_alone:
                return ()
            case "n" | "q":
                return None
            case _:
                _write("y  publish everything above")
                if trees and not is_alone:
                    _write("p  publish the projects without these worktrees")
                _write("n  publish nothing")


def _show_bulk(plan: Mapping[str, Any]) -> None:
    _write(f"{pluralize(len(plan['items']), 'project')} would be published.")
    if executed := plan.get("executed", ()):
        _write(f"Agents execute files in {len(executed)} of them:")
        _write_some([f"{each['name']}  {_files(each)}" for each in executed])


def _files(each: Item) -> str:
    return " ".join(each["files"]) or "could not be scanned in time"


def _what(items: Sequence[Item], trees: Sequence[Item]) -> str:
    worktrees = pluralize(len(trees), "worktree")
    if not items:
        return worktrees
    projects = (
        safe_label(items[0]["name"]) if len(items) == 1 else pluralize(len(items), "project")
    )
    return f"{projects} and {worktrees}" if trees else projects


def _place(tree: Item) -> str:
    return f"{shorten_home(path_of(tree))}  (worktree of {shorten_home(tree['main'])})"


def _write_some(lines: Sequence[str]) -> None:
    for line in lines[:_MOST_LINES]:
        _write(f"  {line}")
    if (more := len(lines) - _MOST_LINES) > 0:
        _write(f"  and {more} more: add --dry-run to list them")


def _write(line: str) -> None:
    sys.stderr.write(safe_text(line) + "\n")
