"""The orders of projects that a person can choose, for the lists of verbs and the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rootsd.cli.text.projects import OWNER, path_of
from rootsd.core.risks import Risk, risks_in

Item = Mapping[str, Any]


def _weight(item: Item) -> int:
    """Return the weight of the risks of a project. Unknown ones weigh more than none."""
    if item.get("risk") is None:
        return 1
    found = risks_in(item["findings"])
    return sum(2 << place for place, risk in enumerate(reversed(Risk)) if risk in found)


SORT_KEYS: Mapping[str, Callable[[Item], Any]] = {
    "name": lambda item: (item["name"].casefold(), item["name"]),
    "path": path_of,
    "age": lambda item: item["discovered_at"],
    "kind": lambda item: item["kind"],
    "verdict": lambda item: item["verdict"],
    "risk": _weight,
    "from": OWNER.cell,
}
READ_FROM_DISK = frozenset(("risk", "from"))
"""The orders for which the daemon must read the projects."""
# What a person looks for first in these orders is at the end of the usual one.
_DESCENDING = frozenset(("age", "risk"))


def in_order_of(items: Iterable[Item], key: str) -> list[Item]:
    """Return the items in the order of one of the keys. Equal ones stay in theirs."""
    return sorted(items, key=SORT_KEYS[key], reverse=key in _DESCENDING)
