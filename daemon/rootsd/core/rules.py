"""Rules by path: match patterns, and add, remove, approve or restore a rule.

Standing orders by path: which rule speaks for a path.

A pattern is an absolute path with globs, matched by components: `*`, `?` and `[…]` stay within
one component, `**` stands for any number of components. A pattern matches a folder and so
speaks for everything below it as well. Characters are characters of UTF-8; a byte that is not
UTF-8 counts as one.

What an order does to the rules: the change that it makes of one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import assert_never

from rootsd.core.changes import ChangeVerb, RuleChange
from rootsd.core.errors import UnknownRule
from rootsd.core.inputs import AddRule, ApproveRule, RemoveRule, RestoreRule, RuleOrder
from rootsd.core.model import Rule, Verdict
from rootsd.core.paths import PathError, normalize_path, text_of

_ANY_DEPTH = b"**"
_END_OF_COMPONENT = r"(?=/|\Z)"
_SPECIAL = re.compile(rb"[*?\[]")
_RANGE_OR_ONE = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def first_match(rules: Iterable[Rule], path: bytes, verdict: Verdict) -> Rule | None:
    """The first rule with that verdict whose pattern matches `path` or a folder above it."""
    for rule in rules:
        if rule.verdict is verdict and matches(rule.pattern, path):
            return rule
    return None


def matches(pattern: bytes, path: bytes) -> bool:
    """Whether `pattern` matches `path` or a folder above it."""
    return _compiled(pattern).match(text_of(path)) is not None


def escape_pattern(path: bytes) -> bytes:
    """The pattern that matches this path alone, with what is below it."""
    return _SPECIAL.sub(rb"[\g<0>]", path)


def normalize_pattern(pattern: bytes) -> bytes:
    """The pattern in its normal form. Raises PathError where it is no absolute path or no glob."""
    normal = normalize_path(pattern)
    try:
        _compiled(normal)
    except re.error as error:
        raise PathError(f"the pattern cannot be read: {error.msg}") from error
    return normal


@lru_cache(maxsize=1024)
def _compiled(pattern: bytes) -> re.Pattern[str]:
    sections = [""]
    for part in pattern.split(b"/"):
        if part == _ANY_DEPTH:
            sections.append("")
        elif part:
            sections[-1] += "/" + _component(text_of(part))
    first, *deeper = [section + _END_OF_COMPONENT for section in sections]
    # Atomic: where a section first fits is as good as anywhere deeper, since each spans a fixed
    # number of components. A deep path cannot make the match try all ways of placing them.
    return re.compile(first + "".join(f"(?>.*?{each})" for each in deeper), re.DOTALL)


def _component(glob: str) -> str:
    pieces, index = [""], 0
    while index < len(glob):
        char = glob[index]
        index += 1
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[" and (end := _class_end(glob, index)) > 0:
            pieces[-1] += _class(glob[index:end])
            index = end + 1
        else:
            pieces[-1] += re.escape(char)
    first, *starred = pieces
    if not starred:
        return first
    # Atomic: where a piece first fits is as good as anywhere later, and a folder's name, which
    # anybody may choose, cannot make the match try all ways of sharing it among the stars.
    *middle, last = starred
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + f"[^/]*{last}"


def _class_end(glob: str, start: int) -> int:
    """Where the class that opens before `start` ends; a `]` that comes first is a member."""
    first = start + 1 if glob.startswith(("!", "^"), start) else start
    return glob.find("]", first + 1)


def _class(inside: str) -> str:
    """The members and ranges of a class, each written so that `re` sees nothing special in it."""
    negated = inside.startswith(("!", "^"))
    rest = inside[1:] if negated else inside
    members = [
        f"{re.escape(low)}-{re.escape(high)}" if high else re.escape(single)
        for low, high, single in _RANGE_OR_ONE.findall(rest)
    ]
    return "(?!/)[" + ("^" if negated else "") + "".join(members) + "]"


def rule_change(
    rules: Sequence[Rule], order: RuleOrder, next_rule: int, now: datetime
) -> RuleChange:
    """What `order` makes of one rule; a new one is number `next_rule`. Raises UnknownRule, and
    PathError for what is no pattern."""
    match order:
        case AddRule(actor=actor):
            pattern = normalize_pattern(order.pattern)
            rule = Rule(next_rule, pattern, order.verdict, actor, now)
            return RuleChange(next_rule, None, rule, ChangeVerb.RULE_ADDED, actor)
        case RemoveRule(number=number, actor=actor):
            return RuleChange(number, _known(rules, number), None, ChangeVerb.RULE_REMOVED, actor)
        case ApproveRule(number=number, actor=actor):
            lapsed = _known(rules, number)
            if lapsed.verdict is not Verdict.PENDING:
                raise UnknownRule(f"rule {number} did not lapse", "rootsd rule ls")
            again = replace(lapsed, verdict=Verdict.APPROVED, actor=actor, at=now)
            return RuleChange(number, lapsed, again, ChangeVerb.APPROVED, actor)
        case RestoreRule(number=number, actor=actor):
            return RuleChange(number, _found(rules, number), order.rule, ChangeVerb.UNDONE, actor)
        case _:
            assert_never(order)


def apply_rule_change(rules: Sequence[Rule], change: RuleChange) -> list[Rule]:
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
