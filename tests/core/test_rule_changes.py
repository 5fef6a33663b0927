"""The change that an order makes to one rule."""

from __future__ import annotations

import pytest

from rootsd.core.changes import ChangeVerb, RuleChange
from rootsd.core.errors import UnknownRule
from rootsd.core.inputs import AddRule, ApproveRule, RemoveRule, RestoreRule, RuleOrder
from rootsd.core.model import Rule, Verdict
from rootsd.core.paths import PathError
from rootsd.core.rules import apply_rule_change, rule_change
from support.sample_decisions import PERSON, after, rule

LAPSED, DENYING = rule(2, Verdict.PENDING), rule(4, Verdict.DENIED)
BOOK = (LAPSED, DENYING)


def change_by(order: RuleOrder) -> RuleChange:
    return rule_change(BOOK, order, 7, after(60))


def test_a_new_rule_gets_the_next_number_and_a_normalized_pattern() -> None:
    change = change_by(AddRule(b"/srv//x/", Verdict.DENIED, PERSON))
    new = Rule(7, b"/srv/x", Verdict.DENIED, PERSON, after(60))
    assert change == RuleChange(7, None, new, ChangeVerb.RULE_ADDED, PERSON)
    assert apply_rule_change(BOOK, change) == [*BOOK, new]
    with pytest.raises(PathError):
        change_by(AddRule(b"srv", Verdict.DENIED, PERSON))


def test_a_rule_is_removed_by_its_number() -> None:
    change = change_by(RemoveRule(4, PERSON))
    assert change == RuleChange(4, DENYING, None, ChangeVerb.RULE_REMOVED, PERSON)
    assert apply_rule_change(BOOK, change) == [LAPSED]


def test_a_lapsed_rule_is_reinstated_with_its_number() -> None:
    change = change_by(ApproveRule(2, PERSON))
    again = Rule(2, LAPSED.pattern, Verdict.APPROVED, PERSON, after(60))
    assert change == RuleChange(2, LAPSED, again, ChangeVerb.APPROVED, PERSON)
    assert apply_rule_change(BOOK, change) == [again, DENYING]


@pytest.mark.parametrize("order", [ApproveRule(4, PERSON), ApproveRule(3, PERSON)])
def test_only_a_lapsed_rule_can_be_reinstated(order: RuleOrder) -> None:
    with pytest.raises(UnknownRule):
        change_by(order)


def test_an_undone_rule_is_restored_with_its_number() -> None:
    gone = rule(3, Verdict.APPROVED)
    change = change_by(RestoreRule(3, gone, PERSON))
    assert change == RuleChange(3, None, gone, ChangeVerb.UNDONE, PERSON)
    assert apply_rule_change(BOOK, change) == [LAPSED, gone, DENYING]
