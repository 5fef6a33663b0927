"""Orders on projects, and what they did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import Access
from rootsd.wire.facts import WorktreeItem
from rootsd.wire.projects import Item, RuleItem, Selection
from rootsd.wire.request import Request

LONGEST_S = 3650 * 86_400  # of an approval that has an end


class DecisionVerb(StrEnum):
    """The three orders on projects."""

    APPROVE = "approve"
    DENY = "deny"
    FORGET = "forget"


class Effect(StrEnum):
    """Whether an order is carried out or only shown."""

    APPLY = "apply"
    DRY_RUN = "dry-run"


class Span(StrEnum):
    """For whom an approval holds."""

    USUAL = "usual"
    """For the running session that asks for the folder; for all where none does."""
    SESSION = "session"
    """For the running session that asks; an error where none does."""
    ALWAYS = "always"
    """For all, until it is revoked."""


@dataclass(frozen=True, slots=True)
class Decide(Request):
    """An order on projects: answers with `Decided`. `name` goes with exactly one project.

    `refs` name projects when `select` is NAMED; else `select` (narrowed by `under`) does. An
    approval ends after `lasts` seconds, if that is given. With `shown`, the `identity` of each of
    `refs` as a `ShowQuery` told it, nothing is decided where one is another directory by now.
    Without `access`, an approval is for reading where it answers a session, else for writing too.

    An approval also publishes the `worktrees` that a person confirmed: each is the `id` of a
    `WorktreeItem` with `confirmable`, and `worktrees_shown` has the `identity` of each. If one of
    them is another directory by now, nothing is decided.
    """

    method: ClassVar[str] = "decide"

    verb: DecisionVerb
    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.NAMED
    under: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    access: Access | None = None
    span: Span = Span.USUAL
    lasts: int | None = None
    effect: Effect = Effect.APPLY
    shown: tuple[str, ...] = ()
    worktrees: tuple[str, ...] = ()
    worktrees_shown: tuple[str, ...] = ()


class ExecutedItem(TypedDict):
    """A project with files that agents execute; `files` are relative to it."""

    id: str
    name: str
    path: str | None
    files: list[str]


class Decided(TypedDict):
    """What an order did: `items` were changed, `unchanged` were so already. `rules` are those
    that had lapsed and approve again, where there are any. `renewed` has the ids of the `items`
    that were approved as they are before, and are approved again for sessions that run.

    An approval lists the `worktrees` of what it approves: those that clients see with it, and
    those that stay pending. `published` are the paths of all folders that clients see from now on
    and did not before, or would see. A dry run of an approval of many projects also tells which
    of them hold files that agents execute: `executed`.
    """

    revision: int
    items: list[Item]
    unchanged: list[Item]
    warnings: list[str]
    rules: NotRequired[list[RuleItem]]
    worktrees: NotRequired[list[WorktreeItem]]
    published: NotRequired[list[str]]
    executed: NotRequired[list[ExecutedItem]]
    renewed: NotRequired[list[str]]
