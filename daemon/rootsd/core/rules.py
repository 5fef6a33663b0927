"""Standing orders by path: which rule speaks for a path.

A pattern is an absolute path with globs, matched by components: `*`, `?` and `[…]` stay within
one component, `**` stands for any number of components. A pattern matches a folder and so
speaks for everything below it as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rootsd.core.model import Rule, Verdict
from rootsd.core.paths import PathError, checked


def speaking(rules: Iterable[Rule], path: bytes, verdict: Verdict) -> Rule | None:
    """The first rule with that verdict whose pattern matches `path` or a folder above it."""
    for rule in rules:
        if rule.verdict is verdict and _compiled(rule.pattern).match(path):
            return rule
    return None


def checked_pattern(pattern: bytes) -> bytes:
    """The pattern in its normal form. Raises PathError where it is no absolute path or no glob."""
    normal = checked(pattern)
    try:
        _compiled(normal)
    except re.error as error:
        raise PathError(f"the pattern cannot be read: {error}") from error
    return normal


@lru_cache(maxsize=1024)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    parts = [part for part in pattern.split(b"/") if part]
    regex = b"".join(
        rb"(?:/[^/]+)*" if part == b"**" else b"/" + _component(part) for part in parts
    )
    return re.compile(regex + rb"(?:/|\Z)", re.DOTALL)


def _component(glob: bytes) -> bytes:
    out, index = [], 0
    while index < len(glob):
        char = glob[index : index + 1]
        index += 1
        if char == b"*":
            out.append(rb"[^/]*")
        elif char == b"?":
            out.append(rb"[^/]")
        elif char == b"[" and (end := glob.find(b"]", index + 1)) > 0:
            inside = glob[index:end].replace(b"\\", rb"\\").replace(b"[", rb"\[")
            negated = inside.startswith((b"!", b"^"))
            out.append(rb"(?!/)[" + (b"^" + inside[1:] if negated else inside) + b"]")
            index = end + 1
        else:
            out.append(re.escape(char))
    return b"".join(out)
