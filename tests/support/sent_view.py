"""The view of a confined program as a daemon sends it: first all roots, then each change."""

from __future__ import annotations

from typing import Any

from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.paths import text_of
from rootsd.wall.kernel.orders import encode_root


class SentView:
    """The part of a view that was sent on one connection."""

    def __init__(self) -> None:
        self._roots: dict[bytes, ConfinedRoot] = {}
        self._denied: tuple[bytes, ...] = ()
        self._number = -1

    def change_to(self, *roots: ConfinedRoot, denied: tuple[bytes, ...] = ()) -> dict[str, Any]:
        """Return the message that leaves exactly these roots and denied folders."""
        denied_before, self._denied = self._denied, denied
        before, self._roots = self._roots, {root.path: root for root in roots}
        self._number += 1
        change = {
            "changed": [encode_root(root) for root in roots if before.get(root.path) != root],
            "removed": [text_of(path) for path in before.keys() - self._roots.keys()],
            "denied": None if denied == denied_before else [text_of(path) for path in denied],
        }
        return {
            "number": self._number, "revision": 1, "focus": None, "roots": change, "screen": None
        }  # fmt: skip
