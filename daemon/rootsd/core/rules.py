"""Standing orders by path: which rule speaks for a path.

A pattern is an absolute path with globs, matched by components: `*`, `?` and `[…]` stay within
one component, `**` stands for any number of components. A pattern matches a folder and so
speaks for everything below it as well. Characters are characters of UTF-8; a byte that is not
UTF-8 counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rootsd.core.model import Rule, Verdict
from rootsd.core.paths import PathError, checked, text_of

_ANY_DEPTH = b"**"
_END_OF_COMPONENT = r"(?=/|\Z)"
_SPECIAL = re.compile(rb"[*?\[]")
_RANGE_OR_ONE = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def speaking(rules: Iterable[Rule], path: bytes, verdict: Verdict) -> Rule | None:
    """The first rule with that verdict whose pattern matches `path` or a folder above it."""
    for rule in rules:
        if rule.verdict is verdict and matches(rule.pattern, path):
            return rule
    return None


def matches(pattern: bytes, path: bytes) -> bool:
    """Whether `pattern` matches `path` or a folder above it."""
    return _compiled(pattern).match(text_of(path)) is not None


def literal(path: bytes) -> bytes:
    """The pattern that matches this path alone, with what is below it."""
    return _SPECIAL.sub(rb"[\g<0>]", path)


def checked_pattern(pattern: bytes) -> bytes:
    """The pattern in its normal form. Raises PathError where it is no absolute path or no glob."""
    normal = checked(pattern)
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
