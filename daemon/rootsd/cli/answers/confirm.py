"""Send an order after a person has confirmed it: facts, question, order, result.

An order can do more than its words name: a glob, a rule, or a folder covers many projects, and a
main checkout has worktrees. Every verb that decides goes through `decide`, in four steps:

1. *Facts.* A dry run of the order says what it would decide about.
2. *Question.* If that is more than one project, a person sees the list with names and risks, and
   presses a key. `--yes` is the same answer in advance.
3. *Order.* The order carries the tokens of the listed projects. The daemon refuses an order about
   several projects that were not listed. Then the list is shown again.
4. *Result.* Each verb prints its own.

Without a terminal and without `--yes`, the order is sent as it is. It succeeds if it decides about
one project.

An approval asks three more questions. It says what an incomplete project lacks, and publishes it
only after a key, or with `--incomplete`. Worktrees that are older than the approval are published
only after a key, or with `--worktrees`. An approval of a linked worktree or a submodule includes
its Git directory in a pending checkout, for programs behind the wall, only after another key, or
with `--shared-git`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.answers.affected import affected_lines
from rootsd.cli.answers.decisions import (
    confirmable_git_directories,
    confirmable_worktrees,
    print_result,
)
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.phrases import pluralize, shorten_home
from rootsd.cli.text.projects import describe_session_request, describe_shared_git, path_of
from rootsd.core.errors import ErrorCode, Exit, RootsdError, Unconfirmed
from rootsd.core.labels import safe_label, safe_text
from rootsd.link.rpc import DaemonError
from rootsd.wire.decisions import (
    AddRuleRequest,
    ApplyMode,
    ApprovalScope,
    DecideRequest,
    DecisionVerb,
    RemoveRuleRequest,
    TagRequest,
)
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection, ShowQuery

_MOST_LINES = 20
_MOST_SESSIONS = 9  # one key for each
# Projects can appear while a person reads the list. Then it is shown again, but not for ever.
_ROUNDS = 3
_GLOB = frozenset("*?[")
_UNDO = "rootsd undo takes this back."
_NO_GIT_DIRECTORY = "No project of this approval uses the Git directory of a pending checkout."

Item = Mapping[str, Any]
ConfirmedOrder = DecideRequest | TagRequest | AddRuleRequest | RemoveRuleRequest | UndoRequest
OrderT = TypeVar("OrderT", bound=ConfirmedOrder)


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
    AS_ORDERED = auto()
    """Publish those that the order names."""


class PendingGitDirectories(Enum):
    """What to do with Git directories of pending checkouts that approved projects use."""

    ASK = auto()
    INCLUDE = auto()
    AS_ORDERED = auto()
    """Include those that the order names."""


class IncompleteProjects(Enum):
    """What to do with named projects that are incomplete."""

    ASK = auto()
    PUBLISH = auto()


class KeyPolicy(Enum):
    """Whether to ask a person for a key, or to take the answer from `--yes`."""

    IF_THERE = auto()
    NEVER = auto()

    @classmethod
    def for_flag(cls, *, yes: bool) -> KeyPolicy:
        """Return the policy for the flag `--yes`."""
        return cls.NEVER if yes else cls.IF_THERE


class Confirmation(Struct, frozen=True):
    """How an order is confirmed."""

    prompt: ConfirmationPrompt
    existing_worktrees: ExistingWorktrees = ExistingWorktrees.ASK
    key: KeyPolicy = KeyPolicy.IF_THERE
    git_directories: PendingGitDirectories = PendingGitDirectories.ASK
    incomplete: IncompleteProjects = IncompleteProjects.ASK

    @property
    def needs_plan(self) -> bool:
        """Return whether the person confirmed in advance something that only a plan lists."""
        return (
            self.key is KeyPolicy.NEVER
            or self.existing_worktrees is ExistingWorktrees.PUBLISH
            or self.git_directories is PendingGitDirectories.INCLUDE
            or self.incomplete is IncompleteProjects.PUBLISH
        )

    def unasked(self) -> Confirmation:
        """Return the same confirmation if nobody can be asked: what it would ask is left out."""
        trees, git = self.existing_worktrees, self.git_directories
        if trees is ExistingWorktrees.ASK:
            trees = ExistingWorktrees.AS_ORDERED
        if git is PendingGitDirectories.ASK:
            git = PendingGitDirectories.AS_ORDERED
        return replace(self, existing_worktrees=trees, git_directories=git)

    def asks(self, invocation: Invocation) -> bool:
        """Return whether a key can be asked for."""
        flags = invocation.flags
        return self.key is KeyPolicy.IF_THERE and not flags.no_input and self.prompt.is_there()


class Decided(Struct, Generic[OrderT], frozen=True):
    """An order as it was sent, its plan if there was one, and the daemon's answer."""

    order: OrderT
    plan: Mapping[str, Any] | None
    answer: dict[str, Any]


def decide(
    invocation: Invocation, order: OrderT, confirmation: Confirmation
) -> Decided[OrderT] | None:
    """Ask for confirmation if the order needs it, and send it. None means that nothing changed.

    Raises Unconfirmed if the order decides about several projects and nobody can be asked, and
    what the daemon answers.
    """
    if order.effect is ApplyMode.DRY_RUN:
        return Decided(order, None, invocation.call(order))
    has_plan = confirmation.asks(invocation) or confirmation.needs_plan
    for round_ in range(_ROUNDS):
        sent, plan = order, None
        if has_plan:
            try:
                plan = _planned(invocation, order)
            except RootsdError as error:
                answered = _for_one_session(invocation, order, confirmation, error)
                if answered is None:
                    return None
                order, plan = answered, _planned(invocation, answered)
            known = _with_incomplete(invocation, order, plan, confirmation)
            chosen = None if known is None else _confirmed(invocation, known, plan, confirmation)
            if chosen is None:
                return None
            sent = chosen
        try:
            return Decided(sent, plan, invocation.call(sent))
        except DaemonError as error:
            if not error.unconfirmed:
                raise
            is_answered = bool(sent.confirmed) or confirmation.asks(invocation)
            if not is_answered or round_ == _ROUNDS - 1:
                raise _how_to_confirm(invocation, error) from error
    raise AssertionError("the last round returns or raises")


def confirm_and_send(
    invocation: Invocation, order: DecideRequest | TagRequest, confirmation: Confirmation
) -> int:
    """Send an order about projects through `decide`, print its effect, and return the status."""
    decided: Decided[DecideRequest | TagRequest] | None = decide(invocation, order, confirmation)
    if decided is None:
        return declined(invocation, order)
    order, answer = decided.order, decided.answer
    print_result(invocation, order, answer)
    if not isinstance(order, DecideRequest) or order.effect is ApplyMode.DRY_RUN:
        return Exit.OK
    if order.verb is DecisionVerb.APPROVE:
        if _is_open_ended(order) and answer["items"]:
            invocation.output.message(_UNDO)
        order = _add_to_unknown(invocation, decided, confirmation)
        includes_git = confirmation.git_directories is PendingGitDirectories.INCLUDE
        if includes_git and not (
            confirmable_git_directories(decided.plan or answer) or order.shared_git
        ):
            invocation.output.message(_NO_GIT_DIRECTORY)
    return Exit.OK


def declined(invocation: Invocation, order: ConfirmedOrder) -> int:
    """Say that nothing was changed, and return the exit status for that."""
    is_approval = isinstance(order, DecideRequest) and order.verb is DecisionVerb.APPROVE
    invocation.output.message(f"Nothing was {'published' if is_approval else 'changed'}.")
    return Exit.FAILED


def _how_to_confirm(invocation: Invocation, error: RootsdError) -> Unconfirmed:
    """Return the error with the reason why nobody was asked, and the whole command to type."""
    why = (
        "--no-input forbids the question" if invocation.flags.no_input else "no terminal to ask on"
    )
    verb, *words = shlex.split(invocation.command)
    command = shlex.join(["rootsd", verb, *words, "--yes", *invocation.arguments])
    listed = "--dry-run lists them"
    return Unconfirmed(f"{error.message} ({why}; {listed})", command)


def _for_one_session(
    invocation: Invocation, order: OrderT, confirmation: Confirmation, error: RootsdError
) -> OrderT | None:
    """Ask which of several sessions gets the folder; return None to publish nothing.

    Raises `error` if it has another reason, or if nobody can be asked.
    """
    if error.code is not ErrorCode.AMBIGUOUS or not confirmation.asks(invocation):
        raise error
    if not isinstance(order, DecideRequest) or order.verb is not DecisionVerb.APPROVE:
        raise error
    if order.select is not Selection.NAMED or len(order.refs) != 1:
        raise error
    (item,) = invocation.call(ShowQuery(order.cwd, order.refs))["items"]
    return cast("OrderT | None", answer_one_session(order, item, confirmation.prompt.press))


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
        _write(f"{number}  {describe_session_request(each)}")
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


def _planned(invocation: Invocation, order: ConfirmedOrder) -> dict[str, Any]:
    """Return the effect that the order would have."""
    return invocation.call(replace(order, effect=ApplyMode.DRY_RUN))


def _confirmed(
    invocation: Invocation, order: OrderT, plan: Mapping[str, Any], confirmation: Confirmation
) -> OrderT | None:
    """Return the order with what a person confirmed, or None to change nothing."""
    asks, prompt = confirmation.asks(invocation), confirmation.prompt
    trees, directories = _further(plan, confirmation if asks else confirmation.unasked())
    alone, alone_plan = order, plan
    if trees and isinstance(order, DecideRequest):
        order = replace(
            order,
            worktrees=tuple(tree["id"] for tree in trees),
            worktrees_shown=tuple(tree["identity"] for tree in trees),
        )
        plan = {**_planned(invocation, order), "items": plan["items"]}
    if asks and (trees or "confirmation" in plan):
        match _ask(prompt, order, plan, trees):
            case _Answer.NOTHING:
                return None
            case _Answer.WITHOUT_WORKTREES:
                order, plan = alone, alone_plan
            case _Answer.EVERYTHING:
                pass
    if asks and directories:
        chosen = _ask_about_git_directories(prompt, directories)
        if chosen is None:
            return None
        directories = chosen
    if directories and isinstance(order, DecideRequest):
        order = replace(
            order,
            shared_git=tuple(each["root"] for each in directories),
            shared_git_shown=tuple(each["identity"] for each in directories),
        )
    if asks or confirmation.key is KeyPolicy.NEVER:
        return with_tokens(order, plan)
    return order


def _with_incomplete(
    invocation: Invocation, order: OrderT, plan: Mapping[str, Any], confirmation: Confirmation
) -> OrderT | None:
    """Return the order with the incomplete projects that a person wants to publish anyway.

    Return None to publish nothing. If nobody can be asked, the daemon refuses such a project.
    """
    lacking = plan.get("incomplete", ())
    if not lacking or not isinstance(order, DecideRequest):
        return order
    if confirmation.incomplete is IncompleteProjects.ASK:
        if not confirmation.asks(invocation):
            return order
        if not _accepts_incomplete(confirmation.prompt, lacking):
            return None
    return cast("OrderT", accepting_incomplete(order, lacking))


def accepting_incomplete(order: DecideRequest, lacking: Sequence[Item]) -> DecideRequest:
    """Return an approval from a person who knows what each of its incomplete projects lacks."""
    return replace(
        order,
        incomplete=tuple(each["id"] for each in lacking),
        incomplete_shown=tuple(each["reason"] for each in lacking),
    )


def incomplete_lines(lacking: Sequence[Item]) -> list[str]:
    """Return a warning for each incomplete project of an approval."""
    return [f"{safe_label(each['name'])} is incomplete: {each['lacks']}" for each in lacking]


def _accepts_incomplete(prompt: ConfirmationPrompt, lacking: Sequence[Item]) -> bool:
    _write_some(incomplete_lines(lacking))
    what = "it" if len(lacking) == 1 else "them"
    while True:
        match prompt.press(f"Publish {what} anyway? [y,n] "):
            case "y":
                return True
            case "n" | "q":
                return False
            case _:
                _write(f"y  publish {what} as on the disk, now and when the rest arrives")
                _write("n  change nothing")


def _further(plan: Item, confirmation: Confirmation) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the worktrees and the Git directories that the approval could include as well."""
    trees = confirmation.existing_worktrees
    git = confirmation.git_directories
    return (
        confirmable_worktrees(plan) if trees is not ExistingWorktrees.AS_ORDERED else (),
        confirmable_git_directories(plan) if git is not PendingGitDirectories.AS_ORDERED else (),
    )


def with_tokens(order: OrderT, plan: Mapping[str, Any]) -> OrderT:
    """Return the order, confirmed for the projects that its `plan` lists."""
    confirmation = plan.get("confirmation")
    if confirmation is None:
        return order
    return replace(order, confirmed=tuple(each["token"] for each in confirmation["projects"]))


def _add_to_unknown(
    invocation: Invocation, decided: Decided[Any], confirmation: Confirmation
) -> DecideRequest:
    """Handle what a person can confirm for a folder that was unknown before its approval.

    Return the last order that was sent.
    """
    plan, answer = decided.plan, decided.answer
    order: DecideRequest = decided.order
    if plan is None:
        return order
    fresh = {
        "worktrees": _not_in(plan, confirmable_worktrees(answer), "worktrees", "id"),
        "shared_git": _not_in(plan, confirmable_git_directories(answer), "shared_git", "root"),
    }
    again = _confirmed(invocation, order, {**fresh, "items": (), "warnings": ()}, confirmation)
    if again is None or again == order:
        return order
    print_result(invocation, again, invocation.call(again))
    return again


def _not_in(plan: Item, items: Sequence[Item], key: str, id_: str) -> list[Item]:
    known = {each[id_] for each in plan.get(key, ())}
    return [each for each in items if each[id_] not in known]


def _is_open_ended(order: DecideRequest) -> bool:
    """Return whether the order may cover projects that it does not name."""
    is_glob = any(not _GLOB.isdisjoint(reference) for reference in order.refs)
    return order.select is not Selection.NAMED or is_glob


class _Answer(Enum):
    """What a person wants to do of a plan."""

    EVERYTHING = auto()
    WITHOUT_WORKTREES = auto()
    NOTHING = auto()


def _ask(
    prompt: ConfirmationPrompt, order: ConfirmedOrder, plan: Item, trees: Sequence[Item]
) -> _Answer:
    """Show the plan, ask, and return the answer."""
    _show(order, plan, trees)
    has_choice = bool(trees) and bool(plan["items"])
    question = f"{_question(order, plan, trees)} [{'y,p,n' if has_choice else 'y,n'}] "
    while True:
        match prompt.press(question):
            case "y":
                return _Answer.EVERYTHING
            case "p" if has_choice:
                return _Answer.WITHOUT_WORKTREES
            case "n" | "q":
                return _Answer.NOTHING
            case _:
                _write("y  do everything above")
                if has_choice:
                    _write("p  publish the projects without these worktrees")
                _write("n  change nothing")


def _show(order: ConfirmedOrder, plan: Item, trees: Sequence[Item]) -> None:
    """Show what a person is about to confirm."""
    if (confirmation := plan.get("confirmation")) is not None:
        for line in affected_lines(confirmation):
            _write(line)
    if isinstance(order, DecideRequest) and order.verb is DecisionVerb.APPROVE:
        for folder in sorted({each["within"] for each in _listed(plan)} - {None}):
            where = shlex.quote(shorten_home(folder)) if " " in folder else shorten_home(folder)
            _write(f"To publish only the projects in it instead: rootsd approve --under {where}")
    if trees:
        _write("These worktrees are older than this approval. Clients would see them, too:")
        _write_some([_place(tree) for tree in trees])


def _question(order: ConfirmedOrder, plan: Item, trees: Sequence[Item]) -> str:
    match order:
        case DecideRequest(verb=DecisionVerb.APPROVE):
            return f"Publish {_what(plan, trees)}?"
        case DecideRequest(verb=DecisionVerb.DENY):
            return f"Deny {_count(plan)}?"
        case DecideRequest():
            return f"Forget the decisions about {_count(plan)}?"
        case TagRequest():
            return f"Change the tags of {_count(plan)}?"
        case AddRuleRequest():
            return "Add this rule?"
        case RemoveRuleRequest():
            return "Remove this rule?"
        case UndoRequest():
            return "Undo this?"


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


def _what(plan: Item, trees: Sequence[Item]) -> str:
    """Return what an approval publishes, such as `api and 2 worktrees`."""
    items, worktrees = plan["items"], pluralize(len(trees), "worktree")
    if not items and trees:
        return worktrees
    apart = {tree["id"] for tree in trees}
    listed = [each for each in _listed(plan) if each["id"] not in apart]
    inside = sum(1 for each in listed if each["within"] is not None)
    projects = pluralize(len(listed) - inside, "project")
    if len(items) == 1:
        projects = safe_label(items[0]["name"])
    if inside:
        projects = f"{projects} with the {pluralize(inside, 'project')} in it"
    return f"{projects} and {worktrees}" if trees else projects


def _count(plan: Item) -> str:
    return pluralize(len(_listed(plan)), "project")


def _listed(plan: Item) -> Sequence[Item]:
    confirmation = plan.get("confirmation")
    return [] if confirmation is None else confirmation["projects"]


def _place(tree: Item) -> str:
    return f"{shorten_home(path_of(tree))}  (worktree of {shorten_home(tree['main'])})"


def _write_some(lines: Sequence[str]) -> None:
    for line in lines[:_MOST_LINES]:
        _write(f"  {line}")
    if (more := len(lines) - _MOST_LINES) > 0:
        _write(f"  and {more} more: add --dry-run to list them")


def _write(line: str) -> None:
    sys.stderr.write(safe_text(line) + "\n")
