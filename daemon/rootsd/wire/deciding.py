"""Orders on projects, and what they did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.model import Access
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


@dataclass(frozen=True, slots=True)
class Decide(Request):
    """An order on projects: answers with `Decided`. `name` goes with exactly one project.

    `refs` name projects when `select` is NAMED; else `select` (narrowed by `under`) does. An
    approval ends after `lasts` seconds, if that is given. With `shown`, the `identity` of each of
    `refs` as a `ShowQuery` told it, nothing is decided where one is another directory by now.
    """

    method: ClassVar[str] = "decide"

    verb: DecisionVerb
    cwd: str
    refs: tuple[str, ...] = ()
    select: Selection = Selection.NAMED
    under: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    access: Access = Access.READ_WRITE
    lasts: int | None = None
    effect: Effect = Effect.APPLY
    shown: tuple[str, ...] = ()


class Decided(TypedDict):
    """What an order did: `items` were changed, `unchanged` were so already. `rules` are those
    that had lapsed and approve again, where there are any."""

    revision: int
    items: list[Item]
    unchanged: list[Item]
    warnings: list[str]
    rules: NotRequired[list[RuleItem]]
