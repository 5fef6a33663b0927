"""Approve from the command line: plan, show the plan, ask for a key, and send.

An approval can publish more than its words name: a glob or `--all` covers many projects, and a
main checkout has worktrees. On a terminal, a person sees the plan and confirms it with one key.
The order that is then sent names exactly the worktrees that were shown, by their identities.
Without a terminal, the named projects are published without a question. Worktrees that are older
than the approval are published only after a key, or with `--worktrees`.

An approval of a linked worktree or a submodule can include its Git directory in a pending
checkout, for programs behind the wall. It does so only after another key, or with `--shared-git`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.decisions import confirmable_git_directories, confirmable_worktrees, print_result
from rootsd.cli.formatting import describe_shared_git, path_of, pluralize, shorten_home
from rootsd.cli.invocation import Invocation
from rootsd.core.errors import ErrorCode, Exit, RootsdError
from rootsd.core.labels import safe_label, safe_text
from rootsd.wire.decisions import ApplyMode, ApprovalScope, DecideRequest
from rootsd.wire.projects import Selection, ShowQuery

BULK_THRESHOLD = 10
_MOST_LINES = 20
_MOST_SESSIONS = 9  # one key for each
_GLOB = frozenset("*?[")
_UNDO = "rootsd undo takes this back."
_NO_GIT_DIRECTORY = "No project of this approval uses the Git directory of a pending checkout."

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


class PendingGitDirectories(Enum):
    """What to do with Git directories of pending checkouts that approved projects use."""

    ASK = auto()
    INCLUDE = auto()


class KeyPolicy(Enum):
    """Whether to ask a person for a key."""

    IF_THERE = auto()
    NEVER = auto()


class Confirmation(Struct, frozen=True):
    """How an approval is confirmed."""

    prompt: ConfirmationPrompt
    existing_worktrees: ExistingWorktrees = ExistingWorktrees.ASK
    key: KeyPolicy = KeyPolicy.IF_THERE
    git_directories: PendingGitDirectories = PendingGitDirectories.ASK

    @property
    def needs_plan(self) -> bool:
        """Return whether the person confirmed in advance something that only a plan lists."""
        return (
            self.existing_worktrees is ExistingWorktrees.PUBLISH
            or self.git_directories is PendingGitDirectories.INCLUDE
        )

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
    plan: dict[str, Any] | None = None
    if confirmation.asks(invocation) or confirmation.needs_plan:
        try:
            plan = _planned(invocation, order)
        except RootsdError as error:
            answer = _for_one_session(invocation, order, confirmation, error)
            if answer is None:
                invocation.output.message("Nothing was published.")
                return Exit.FAILED
            order, plan = answer, _planned(invocation, answer)
    if plan is not None:
        confirmed = _confirmed(invocation, order, plan, confirmation)
        if confirmed is None:
            invocation.output.message("Nothing was published.")
            return Exit.FAILED
        order = confirmed
    decided = invocation.call(order)
    print_result(invocation, order, decided)
    if _is_open_ended(order) and decided["items"]:
        invocation.output.message(_UNDO)
    if plan is None:
        _add_to_unknown(invocation, order, decided, confirmation)
    if confirmation.git_directories is PendingGitDirectories.INCLUDE and not (
        confirmable_git_directories(plan or decided) or order.shared_git
    ):
        invocation.output.message(_NO_GIT_DIRECTORY)
    return Exit.OK


def _for_one_session(
    invocation: Invocation, order: DecideRequest, confirmation: Confirmation, error: RootsdError
) -> DecideRequest | None:
    """Ask which of several sessions gets the folder; return None to publish nothing.

    Raises `error` if it has another reason, or if nobody can be asked.
    """
    if error.code is not ErrorCode.AMBIGUOUS or not confirmation.asks(invocation):
        raise error
    if order.select is not Selection.NAMED or len(order.refs) != 1:
        raise error
    (item,) = invocation.call(ShowQuery(order.cwd, order.refs))["items"]
    return answer_one_session(order, item, confirmation.prompt.press)


def answer_one_session(
    order: DecideRequest, item: Item, press: Callable[[str], str]
) -> DecideRequest | None:
    """Ask with `press` which of the sessions that request `item` gets it.

    Return the order for that session or for all sessions, and None to publish nothing. Without
    several sessions, return `order`.
    """
    requests = item.get("requests", ())[:_MOST_SESSIONS]
    if len(requests) < 2 or order.session is not None or order.span is ApprovalScope.ALWAYS:  # noqa: PLR2004
        return order
    name = safe_label(item["name"])
    _write(f"{len(requests)} sessions ask for {name}. rootsd saw these processes:")
    for number, each in enumerate(requests, 1):
        own = f' (its own name: "{each["client"]}")' if each["client"] != each["by"] else ""
        _write(f'{number}  {each["by"]}{own}: "{each["reason"]}"')
    keys = ",".join(map(str, range(1, len(requests) + 1)))
    while True:
        match press(f"Which one gets {name}? [{keys},e,n] "):
            case key if key.isdecimal() and 1 <= int(key) <= len(requests):
                session = requests[int(key) - 1]["session"]
                return replace(order, span=ApprovalScope.SESSION, session=session)
            case "e":
                return replace(order, span=ApprovalScope.ALWAYS)
            case "n" | "q":
                return None
            case _:
                _write(f"{keys}  only that session, until it ends")
                _write("e  every session, until you revoke it")
                _write("n  none")


def _confirmed(
    invocation: Invocation,
    order: DecideRequest,
    plan: Mapping[str, Any],
    confirmation: Confirmation,
) -> DecideRequest | None:
    """Return the order with what a person confirmed, or None to publish nothing."""
    asks, prompt = confirmation.asks(invocation), confirmation.prompt
    trees: Sequence[Item] = ()
    if asks or confirmation.existing_worktrees is ExistingWorktrees.PUBLISH:
        trees = confirmable_worktrees(plan)
    directories: Sequence[Item] = ()
    if asks or confirmation.git_directories is PendingGitDirectories.INCLUDE:
        directories = confirmable_git_directories(plan)
    if asks and (trees or _is_bulk(order, plan)):
        chosen = _ask(prompt, order, plan, trees)
        if chosen is None:
            return None
        trees = chosen
    if asks and directories:
        chosen = _ask_about_git_directories(prompt, directories)
        if chosen is None:
            return None
        directories = chosen
    return replace(
        order,
        worktrees=tuple(tree["id"] for tree in trees),
        worktrees_shown=tuple(tree["identity"] for tree in trees),
        shared_git=tuple(each["root"] for each in directories),
        shared_git_shown=tuple(each["identity"] for each in directories),
    )


def _add_to_unknown(
    invocation: Invocation,
    order: DecideRequest,
    decided: Mapping[str, Any],
    confirmation: Confirmation,
) -> None:
    """Handle what a person can confirm for a folder that was unknown before its approval."""
    again = _confirmed(invocation, order, {**decided, "items": ()}, confirmation)
    if again is not None and again != order:
        print_result(invocation, again, invocation.call(again))


def _planned(invocation: Invocation, order: DecideRequest) -> dict[str, Any] | None:
    """Return the effect that the order would have; None for an unknown folder."""
    try:
        return invocation.call(replace(order, effect=ApplyMode.DRY_RUN))
    except RootsdError as error:
        # The order itself adds the unknown folder, or fails with the right error.
        if error.code is ErrorCode.NOTHING_MATCHED:
            return None
        raise


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


def _ask_about_git_directories(
    prompt: ConfirmationPrompt, directories: Sequence[Item]
) -> Sequence[Item] | None:
    """Return the Git directories to include, or None to publish nothing."""
    _write_some([describe_shared_git(each) for each in directories])
    what = "it" if len(directories) == 1 else "them"
    while True:
        match prompt.press(f"Include {what}? [y,n,q] "):
            case "y":
                return directories
            case "n":
                return ()
            case "q":
                return None
            case _:
                _write(f"y  publish, and let programs behind the wall use {what}")
                _write(f"n  publish without {what}")
                _write("q  publish nothing")


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
