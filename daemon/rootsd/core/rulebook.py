"""What an order does to the rules: the change that it makes of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from rootsd.core.changes import RuleChange, Verb
from rootsd.core.errors import UnknownRule
from rootsd.core.inputs import AddRule, ApproveRule, RemoveRule, RestoreRule, RuleOrder
from rootsd.core.model import Rule, Verdict
from rootsd.core.rules import checked_pattern


def rule_change(
    rules: Sequence[Rule], order: RuleOrder, next_rule: int, now: datetime
) -> RuleChange:
    """What `order` makes of one rule; a new one is number `next_rule`. Raises UnknownRule, and
    PathError for what is no pattern."""
    match order:
        case AddRule(actor=actor):
            pattern = checked_pattern(order.pattern)
            rule = Rule(next_rule, pattern, order.verdict, actor, now)
            return RuleChange(next_rule, None, rule, Verb.RULE_ADDED, actor)
        case RemoveRule(number=number, actor=actor):
            return RuleChange(number, _known(rules, number), None, Verb.RULE_REMOVED, actor)
        case ApproveRule(number=number, actor=actor):
            lapsed = _known(rules, number)
            if lapsed.verdict is not Verdict.PENDING:
                raise UnknownRule(f"rule {number} did not lapse", "rootsd rule ls")
            again = replace(lapsed, verdict=Verdict.APPROVED, actor=actor, at=now)
            return RuleChange(number, lapsed, again, Verb.APPROVED, actor)
        case RestoreRule(number=number, actor=actor):
            return RuleChange(number, _found(rules, number), order.rule, Verb.UNDONE, actor)
        case _:
            assert_never(order)


def after_change(rules: Sequence[Rule], change: RuleChange) -> list[Rule]:
    """The rules as they are then, in the order of their numbers."""
    others = [rule for rule in rules if rule.number != change.number]
    here = [] if change.after is None else [change.after]
    return sorted([*others, *here], key=lambda rule: rule.number)


def _found(rules: Sequence[Rule], number: int) -> Rule | None:
    return next((rule for rule in rules if rule.number == number), None)


def _known(rules: Sequence[Rule], number: int) -> Rule:
    rule = _found(rules, number)
    if rule is None:
        raise UnknownRule(f"there is no rule {number}", "rootsd rule ls")
    return rule
