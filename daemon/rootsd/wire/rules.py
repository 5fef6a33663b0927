"""Standing orders in control requests: who asks for them, and what they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.core.model import Verdict
from rootsd.wire.deciding import Effect
from rootsd.wire.projects import Item, RuleItem
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class RulesQuery(Request):
    """The rules, in the order in which they were made: `RuleListing`."""

    method: ClassVar[str] = "rules"


@dataclass(frozen=True, slots=True)
class RuleAddition(Request):
    """Approve or deny whatever `pattern` matches, from now on: `Ruled`. See `rootsd.core.rules`.

    A pattern may begin with `~/`, or be relative to `cwd`.
    """

    method: ClassVar[str] = "rule-add"

    verdict: Verdict
    pattern: str
    cwd: str
    effect: Effect = Effect.APPLY


@dataclass(frozen=True, slots=True)
class RuleRemoval(Request):
    """Take rule `number` back, and what it alone had decided: `Ruled`."""

    method: ClassVar[str] = "rule-rm"

    number: int
    effect: Effect = Effect.APPLY


class RuleListing(TypedDict):
    """Rules, oldest first."""

    revision: int
    items: list[RuleItem]
    warnings: list[str]


class Ruled(TypedDict):
    """What became of a rule, and the known projects that it matches, as they are now. `is_new`
    tells an addition that was made from one that was there."""

    revision: int
    rule: RuleItem
    is_new: bool
    items: list[Item]
    warnings: list[str]
