"""Decide with a person: facts, question, order, result.

An order can do more than its words name: a glob, a rule, or a folder covers many projects, and a
main checkout has worktrees. Every verb that decides goes through `decide`, in four steps:

1. *Facts.* A dry run of the order says what it would decide about.
2. *Question.* A face shows the facts to a person, and returns the order that the person confirms.
   A terminal asks with keys (`cli.answers.terminal_face`), the screen of `rootsd ui` with dialogs
   (`cli.ui.screen_face`).
3. *Order.* The order carries the tokens of the projects that were listed, and the identities of
   what it includes besides them. The daemon refuses an order about several projects that were not
   listed. A face may then begin anew.
4. *Result.* The caller tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.answers.affected import Item
from rootsd.cli.text.phrases import pluralize
from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.labels import safe_label
from rootsd.link.rpc import DaemonError
from rootsd.wire.decisions import (
    AddRuleRequest,
    ApprovalScope,
    DecideRequest,
    DecisionVerb,
    RemoveRuleRequest,
    TagRequest,
)
from rootsd.wire.guard import UndoRequest
from rootsd.wire.projects import Selection, ShowQuery
from rootsd.wire.request import ApplyMode, ControlRequest

Order = DecideRequest | TagRequest | AddRuleRequest | RemoveRuleRequest | UndoRequest
OrderT = TypeVar("OrderT", bound=Order)
Send = Callable[[ControlRequest], Coroutine[Any, Any, dict[str, Any]]]
"""Sends a request, and returns the answer. Raises RootsdError."""


class Facts(Struct, Generic[OrderT], frozen=True):
    """What a person should know before `order`.

    `plan` is the answer to its dry run. `requests` has the `SessionRequestItem`s if several
    sessions request the one folder of an approval. The plan is then for all sessions.
    """

    order: OrderT
    plan: Item
    requests: Sequence[Item] = ()

    @property
    def confirmation(self) -> Item | None:
        """The `ConfirmationItem` of the plan. None if the order is about one project."""
        return self.plan.get("confirmation")

    @property
    def listed(self) -> Sequence[Item]:
        """The projects that the order decides about, if they are several."""
        return () if self.confirmation is None else self.confirmation["projects"]

    @property
    def incomplete(self) -> Sequence[Item]:
        """The incomplete projects that the approval names."""
        lacking: Sequence[Item] = self.plan.get("incomplete", ())
        return lacking

    @property
    def git_directories(self) -> Sequence[Item]:
        """The Git directories of pending checkouts that the approval can include as well."""
        return [each for each in self.plan.get("shared_git", ()) if each["confirmable"]]

    @property
    def worktrees(self) -> Sequence[Item]:
        """The worktrees that the approval can publish as well."""
        return confirmable_worktrees(self.plan)

    async def with_worktrees(self, read: Send) -> Facts[OrderT]:
        """Return the facts about an approval with these worktrees. Raises RootsdError."""
        order = including(self.order, self.worktrees)
        plan = await read(as_plan(order))
        return Facts(order, {**plan, "items": self.plan["items"]}, self.requests)

    def confirmed(self, order: OrderT) -> OrderT:
        """Return `order` with a token for each project that these facts list."""
        tokens = tuple(each["token"] for each in self.listed)
        return replace(order, confirmed=tokens) if tokens else order


class Decided(Struct, Generic[OrderT], frozen=True):
    """An order as it was sent, its facts if they were read, and the daemon's answer."""

    order: OrderT
    facts: Facts[OrderT] | None
    answer: dict[str, Any]


class Face(Protocol[OrderT]):
    """Where a person decides. Each method raises RootsdError."""

    async def read(self, request: ControlRequest) -> dict[str, Any]:
        """Send a request that changes nothing."""

    async def confirm(self, facts: Facts[OrderT]) -> OrderT | None:
        """Show the facts. Return the order as a person confirms it, or None to change nothing."""

    async def send(self, order: OrderT) -> dict[str, Any]:
        """Send an order."""


async def decide(face: Face[OrderT], order: OrderT, rounds: int = 1) -> Decided[OrderT] | None:
    """Have a person confirm `order`, and send it. None means that nothing changed.

    Projects can appear while a person reads the list. Then the facts are read and shown again, in
    at most `rounds` rounds. Raises RootsdError.
    """
    while True:
        facts = await read_facts(face, order)
        confirmed = await face.confirm(facts)
        if confirmed is None:
            return None
        rounds -= 1
        try:
            return Decided(confirmed, facts, await face.send(confirmed))
        except DaemonError as error:
            if not error.unconfirmed or rounds <= 0:
                raise


async def read_facts(face: Face[OrderT], order: OrderT) -> Facts[OrderT]:
    """Return the facts about `order`. Raises RootsdError."""
    try:
        return Facts(order, await face.read(as_plan(order)))
    except RootsdError as error:
        query = _query_about_requests(order)
        if error.code is not ErrorCode.AMBIGUOUS or query is None:
            raise
        items = (await face.read(query))["items"]
        requests = items[0].get("requests", ()) if len(items) == 1 else ()
        if len(requests) < 2:  # noqa: PLR2004
            raise
        for_all = replace(order, span=ApprovalScope.ALWAYS)
        return Facts(order, await face.read(as_plan(for_all)), requests)


def _query_about_requests(order: Order) -> ShowQuery | None:
    """Return the query for who requests the folder, if `order` does not say which session gets it.

    Return None for other orders than an approval of one folder.
    """
    if not isinstance(order, DecideRequest) or order.verb is not DecisionVerb.APPROVE:
        return None
    is_open = order.session is None and order.span is not ApprovalScope.ALWAYS
    is_one = order.select is Selection.NAMED and len(order.refs) == 1
    return ShowQuery(order.cwd, order.refs) if is_open and is_one else None


def as_plan(order: OrderT) -> OrderT:
    """Return the dry run of an order."""
    return replace(order, effect=ApplyMode.DRY_RUN)


def including(
    order: OrderT,
    worktrees: Sequence[Item] = (),
    git_directories: Sequence[Item] = (),
    incomplete: Sequence[Item] = (),
) -> OrderT:
    """Return an approval by a person who was shown these, and includes them."""
    marks = (
        ("worktrees", "id", "identity", worktrees),
        ("shared_git", "root", "identity", git_directories),
        ("incomplete", "id", "reason", incomplete),
    )
    for field, key, mark, items in marks:
        if items:
            changes = {
                field: tuple(each[key] for each in items),
                f"{field}_shown": tuple(each[mark] for each in items),
            }
            order = replace(order, **changes)
    return order


def confirmable_worktrees(item: Item) -> Sequence[Item]:
    """Return the worktrees of a project or a plan that a person may publish with it."""
    return [tree for tree in item.get("worktrees", ()) if tree["confirmable"]]


def incomplete_lines(lacking: Sequence[Item]) -> list[str]:
    """Return a warning for each incomplete project of an approval."""
    return [f"{safe_label(each['name'])} is incomplete: {each['lacks']}" for each in lacking]


def question_of(facts: Facts[Any]) -> str:
    """Return the question whether to give the order."""
    order: Order = facts.order
    match order:
        case DecideRequest(verb=DecisionVerb.APPROVE):
            return f"Publish {_what(facts)}?"
        case DecideRequest(verb=DecisionVerb.DENY):
            return f"Deny {_count(facts)}?"
        case DecideRequest(verb=DecisionVerb.ACCEPT):
            return f"Accept the changed files of {_count(facts)}?"
        case DecideRequest():
            return f"Forget the decisions about {_count(facts)}?"
        case TagRequest():
            return f"Change the tags of {_count(facts)}?"
        case AddRuleRequest():
            return "Add this rule?"
        case RemoveRuleRequest():
            return "Remove this rule?"
        case UndoRequest():
            return "Undo this?"


def _what(facts: Facts[DecideRequest]) -> str:
    """Return what an approval publishes, such as `api and 2 worktrees`."""
    items, trees = facts.plan["items"], facts.order.worktrees
    worktrees = pluralize(len(trees), "worktree")
    if not items and trees:
        return worktrees
    listed = [each for each in facts.listed if each["id"] not in trees]
    inside = sum(1 for each in listed if each["within"] is not None)
    projects = pluralize(len(listed) - inside, "project")
    if len(items) == 1:
        projects = safe_label(items[0]["name"])
    if inside:
        projects = f"{projects} and {pluralize(inside, 'project')} inside"
    return f"{projects} and {worktrees}" if trees else projects


def _count(facts: Facts[DecideRequest | TagRequest]) -> str:
    return pluralize(len(facts.listed) or len(facts.order.refs), "project")
