"""Tell what a client makes of settings that it merges: which folders their rules deny. Pure.

opencode is such a client. It merges its files in a fixed order. A key keeps the place of its first
appearance and the value of its last one. A text in a later file, such as
`"external_directory": "allow"`, replaces all rules of the earlier ones. Of the merged rules, the
last one that matches applies. So a rule that is in a file need not have an effect. Source:
`opencode debug config`, 1.18.33, as of November 2026, and tests/e2e/agents/test_sync_lists.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct


class AccessRule(Struct, frozen=True):
    """A rule about folders outside of the session's project."""

    pattern: str
    action: str


def folder_rules(settings: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> list[AccessRule]:
    """Return the merged rules in the order of the client.

    `settings` are the files in that order. The rules of all tools are at the first of `keys`, and
    those about folders at the second one.
    """
    permissions, tool = keys
    merged: dict[str, Any] = {}
    for each in settings:
        permission = each.get(permissions)
        if isinstance(permission, str):
            permission = {"*": permission}
        merged = _merge(merged, permission) if isinstance(permission, dict) else merged
    return list(_rules(merged, tool))


def without_denial(
    rules: Sequence[AccessRule], folders: Iterable[str], denial: str | None
) -> dict[str, str]:
    """Return each of `folders` whose action is not `denial`, with the rule that applies."""
    found = {}
    for folder in folders:
        last = next(
            (rule for rule in reversed(rules) if _matches(rule.pattern, f"{folder}/x")), None
        )
        if last is None or last.action != denial:
            found[folder] = f'"{last.pattern}": "{last.action}"' if last is not None else ""
    return found


def _merge(earlier: Any, later: Any) -> Any:  # noqa: ANN401 - a JSON value
    if not isinstance(earlier, dict) or not isinstance(later, dict):
        return later
    return earlier | {key: _merge(earlier.get(key), value) for key, value in later.items()}


def _rules(permission: Mapping[str, Any], tool: str) -> Iterator[AccessRule]:
    for name, value in permission.items():
        if not _matches(name, tool):
            continue
        for pattern, action in value.items() if isinstance(value, dict) else [("*", value)]:
            yield AccessRule(str(pattern), str(action))


def _matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches: `*` stands for any text, and `?` for one character."""
    parts = {"*": ".*", "?": "."}
    words = "".join(parts.get(char) or re.escape(char) for char in pattern)
    return re.fullmatch(words, text, re.DOTALL) is not None
