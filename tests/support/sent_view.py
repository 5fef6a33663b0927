"""The view of a confined program as a daemon sends it: first all roots, then each change."""

from __future__ import annotations

from typing import Any

from rootsd.core.mount_plan import ConfinedRoot, RemovalReason, RemovedRoot
from rootsd.core.record import to_json
from rootsd.wire.feed import RootsChange
from rootsd.wire.follow import FeedChange


class SentView:
    """The part of a view that was sent on one connection."""

    def __init__(self) -> None:
        self._roots: dict[bytes, ConfinedRoot] = {}
        self._denied: tuple[bytes, ...] = ()
        self._number = -1
        self._applied = -1

    def confirm(self, applied: int) -> None:
        """Note that the program's wall shows what message `applied` said."""
        self._applied = applied

    @property
    def is_shown(self) -> bool:
        """Whether the wall shows what was sent last."""
        return self._applied == self._number

    def change_to(self, *roots: ConfinedRoot, denied: tuple[bytes, ...] = ()) -> dict[str, Any]:
        """Return the message that leaves exactly these roots and denied folders."""
        denied_before, self._denied = self._denied, denied
        before, self._roots = self._roots, {root.path: root for root in roots}
        self._number += 1
        change = RootsChange(
            tuple(root for root in roots if before.get(root.path) != root),
            tuple(
                RemovedRoot(path, root.name, RemovalReason.DENIED)
                for path, root in before.items()
                if path not in self._roots
            ),
            None if denied == denied_before else frozenset(denied),
        )
        return to_json(FeedChange(self._number, 1, None, change, None))
