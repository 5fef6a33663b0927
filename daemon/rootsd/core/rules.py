"""Rules for paths: match patterns, and add, remove, approve, or restore a rule.

A pattern is an absolute path with globs. `*`, `?`, and `[…]` match within one component, and `**`
matches any number of components. A pattern that matches a folder also covers everything below it.
Characters are UTF-8 characters; a byte that is not UTF-8 counts as one character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import assert_never

from msgspec.structs import replace

from rootsd.core.changes import ChangeVerb, RuleChange
from rootsd.core.errors import UnknownRule
from rootsd.core.inputs import AddRule, ApproveRule, RemoveRule, RestoreRule, RuleOrder
from rootsd.core.model import Project, Rule, Verdict
from rootsd.core.paths import PathError, normalize_path, text_of

_ANY_DEPTH = b"**"
_END_OF_COMPONENT = r"(?=/|\Z)"
_SPECIAL = re.compile(rb"[*?\[]")
_RANGE_OR_ONE = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def first_match(rules: Iterable[Rule], project: Project, verdict: Verdict) -> Rule | None:
    """Return the first rule with `verdict` that covers `project`, or None."""
    for rule in rules:
        if rule.verdict is verdict and why_uncovered(rule, project) is None:
            return rule
    return None


def why_uncovered(rule: Rule, project: Project) -> str | None:
    """Return why a rule does not cover a project, as a clause, or None if it does.

    The clause is empty if its path does not match. Origin and risks are those of the last look.
    """
    if not matches(rule.pattern, project.path):
        return ""
    if rule.origin is None and rule.risk is None:
        return None
    seen = project.observed.inspection
    if seen is None:
        return "rootsd has not looked into the project yet"
    if rule.origin is not None:
        if seen.origin is None:
            return "it has no origin, or not one plain address"
        if not matches(b"/" + rule.origin.encode(), b"/" + seen.origin.encode()):
            return f"its origin is {seen.origin}"
    return f"it has risks ({seen.risk})" if rule.risk is not None and seen.risk else None


def needs_inspection(rules: Iterable[Rule], project: Project) -> bool:
    """Return whether an approve rule for the path of `project` names an origin or a risk."""
    return any(
        rule.verdict is Verdict.APPROVED
        and (rule.origin is not None or rule.risk is not None)
        and matches(rule.pattern, project.path)
        for rule in rules
    )


def matches(pattern: bytes, path: bytes) -> bool:
    """Return whether `pattern` matches `path` or a folder above it."""
    return _compiled(pattern).match(text_of(path)) is not None


def escape_pattern(path: bytes) -> bytes:
    """Return the pattern that matches only `path` and everything below it."""
    return _SPECIAL.sub(rb"[\g<0>]", path)


def split_pattern(pattern: bytes) -> tuple[bytes, bytes]:
    """Return the folder before the first wildcard of an absolute pattern, and the rest."""
    parts = pattern.split(b"/")
    globs = (n for n, part in enumerate(parts) if _SPECIAL.search(part))
    first = next(globs, len(parts))
    return b"/".join(parts[:first]) or b"/", b"/".join(parts[first:])


def normalize_pattern(pattern: bytes) -> bytes:
    """Return the normal form of `pattern`.

    Raises PathError if the pattern is not absolute, or not a valid glob.
    """
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
    # Use atomic groups: each section matches a fixed number of components, so its first match is
    # as good as a deeper one. Without them, a deep path could cause exponential backtracking.
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
    # Use atomic groups: the first match of a piece is as good as a later one. Without them, a
    # folder name, which anybody can choose, could cause exponential backtracking.
    *middle, last = starred
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle) + f"[^/]*{last}"


def _class_end(glob: str, start: int) -> int:
    """Return the end of the character class that begins before `start`, or -1.

    A `]` at its start is a member of the class.
    """
    first = start + 1 if glob.startswith(("!", "^"), start) else start
    return glob.find("]", first + 1)


def _class(inside: str) -> str:
    """Return a character class for `re`, with every special character escaped."""
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
    """Return the change that `order` makes to one rule. A new rule gets the number `next_rule`.

    Raises UnknownRule, and PathError for an invalid pattern.
    """
    match order:
        case AddRule(actor=actor):
            pattern = normalize_pattern(order.pattern)
            conditions = order.origin, order.risk
            rule = Rule(next_rule, pattern, order.verdict, actor, now, *conditions)
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
    """Return the rules after `change`, sorted by number."""
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
