"""Approve from the command line: plan, show the plan, ask for a key, and send.

An approval can publish more than the words say: a glob or `--all` covers many projects, and a main
checkout has worktrees. A person on a terminal sees what would be published, and one key decides.
The order that is sent then names exactly what was shown, worktrees with their identities.
Elsewhere nobody is asked: what was named is published. Worktrees that are older than the approval
are published only with `--worktrees`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Protocol

from rootsd.cli.decisions import print_result, send
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
    """What is to become of the worktrees that existed before the approval."""

    ASK = auto()
    PUBLISH = auto()


class KeyPolicy(Enum):
    """Whether a person confirms with a key."""

    IF_THERE = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Confirmation:
    """How an approval is confirmed."""

    asker: ConfirmationPrompt
    older: ExistingWorktrees = ExistingWorktrees.ASK
    key: KeyPolicy = KeyPolicy.IF_THERE

    def asks(self, invocation: Invocation) -> bool:
        """Return whether a key can be asked for."""
        flags = invocation.flags
        return self.key is KeyPolicy.IF_THERE and not flags.no_input and self.asker.is_there()


def confirm_and_send(
    invocation: Invocation, order: DecideRequest, confirmation: Confirmation
) -> int:
    """Send an approval, after a person confirmed what needs it; return the exit status."""
    if order.effect is ApplyMode.DRY_RUN:
        print_result(invocation, order, send(invocation, order))
        return Exit.OK
    asks = confirmation.asks(invocation)
    plan: dict[str, Any] | None = None
    if asks or confirmation.older is ExistingWorktrees.PUBLISH:
        plan = _planned(invocation, order)
    if plan is not None:
        trees = _confirmable(plan)
        if asks and (trees or _is_bulk(order, plan)):
            chosen = _ask(confirmation.asker, order, plan, trees)
            if chosen is None:
                invocation.output.say("Nothing was published.")
                return Exit.FAILED
            trees = chosen
        order = _with_worktrees(order, trees)
    decided = send(invocation, order)
    print_result(invocation, order, decided)
    if _is_open_ended(order) and decided["items"]:
        invocation.output.say(_UNDO)
    if plan is None and (trees := _confirmable(decided)):
        return _publish_older(invocation, order, decided, trees, confirmation)
    return Exit.OK


def _publish_older(
    invocation: Invocation,
    order: DecideRequest,
    decided: Mapping[str, Any],
    trees: Sequence[Item],
    confirmation: Confirmation,
) -> int:
    """Deal with the worktrees of a folder that was not known before its approval."""
    if confirmation.older is ExistingWorktrees.ASK:
        if not confirmation.asks(invocation):
            return Exit.OK
        chosen = _ask(confirmation.asker, order, {**decided, "items": ()}, trees)
        if not chosen:
            return Exit.OK
    again = _with_worktrees(order, trees)
    print_result(invocation, again, send(invocation, again))
    return Exit.OK


def _planned(invocation: Invocation, order: DecideRequest) -> dict[str, Any] | None:
    """Return what the order would do; None for a folder that nobody knows yet."""
    try:
        return send(invocation, replace(order, effect=ApplyMode.DRY_RUN))
    except RootsdError as error:
        # The order itself tells what is wrong, or takes the folder in.
        if error.code is ErrorCode.NOTHING_MATCHED:
            return None
        raise


def _with_worktrees(order: DecideRequest, trees: Sequence[Item]) -> DecideRequest:
    return replace(
        order,
        worktrees=tuple(tree["id"] for tree in trees),
        worktrees_shown=tuple(tree["identity"] for tree in trees),
    )


def _confirmable(answer: Mapping[str, Any]) -> Sequence[Item]:
    return [tree for tree in answer.get("worktrees", ()) if tree["confirmable"]]


def _is_open_ended(order: DecideRequest) -> bool:
    """Return whether the order may cover projects that nobody named."""
    is_glob = any(not _GLOB.isdisjoint(reference) for reference in order.refs)
    return order.select is not Selection.NAMED or is_glob


def _is_bulk(order: DecideRequest, plan: Mapping[str, Any]) -> bool:
    is_risky = len(plan["items"]) > BULK_THRESHOLD or bool(plan.get("executed"))
    return _is_open_ended(order) and is_risky


def _ask(
    asker: ConfirmationPrompt, order: DecideRequest, plan: Mapping[str, Any], trees: Sequence[Item]
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
        match asker.press(f"Publish {what}? [{keys}] "):
            case "y":
                return trees
            case "p" if trees and not is_alone:
                return ()
            case "n" | "q":
                return None
            case _:
                _write("y  publish all of it")
                if trees and not is_alone:
                    _write("p  publish the projects without these worktrees")
                _write("n  publish nothing")


def _show_bulk(plan: Mapping[str, Any]) -> None:
    _write(f"{pluralize(len(plan['items']), 'project')} would be published.")
    if executed := plan.get("executed", ()):
        _write(f"Agents execute files in {len(executed)} of them:")
        _write_some([f"{each['name']}  {_files(each)}" for each in executed])


def _files(each: Item) -> str:
    return " ".join(each["files"]) or "could not be looked into in time"


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
