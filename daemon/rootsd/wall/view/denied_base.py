"""Find what denied folders have in the base of a view.

The base names paths as tools and people write them. A denial names a canonical path. So this
compares the real paths of what the entries show, which are looked up once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property

from rootsd.core.mount_plan import SHOWN_FROM_OUTSIDE, Mask, ViewEntry, ViewEntryKind, base_masks
from rootsd.core.paths import ancestors

DENIED = "denied"
"""The reason of an entry that is hidden because of a denial."""


def is_denied(path: bytes, denied: frozenset[bytes]) -> bool:
    """Return whether `path` is at, in, or through a link in, one of the `denied` folders."""
    real = os.path.realpath(path)
    return not denied.isdisjoint((path, *ancestors(path), real, *ancestors(real)))


class DeniedBase:
    """The base of one view, and what to mask in it."""

    def __init__(self, entries: Iterable[ViewEntry]) -> None:
        self._entries = tuple(entries)

    def masks(self, denied: frozenset[bytes], roots: Iterable[bytes] = ()) -> tuple[Mask, ...]:
        """Return the masks; see `base_masks`."""
        return base_masks(self._sources, self._others, denied, roots) if denied else ()

    def entries_without(self, denied: frozenset[bytes]) -> tuple[ViewEntry, ...]:
        """Return the entries without those that are denied, and with what is denied hidden."""
        hidden = {mask.path for mask in self.masks(denied)}
        kept = (
            entry
            for entry in self._entries
            if entry.kind not in SHOWN_FROM_OUTSIDE
            or hidden.isdisjoint((entry.path, *ancestors(entry.path)))
        )
        return (*kept, *(ViewEntry(each, ViewEntryKind.HIDDEN, DENIED) for each in sorted(hidden)))

    @cached_property
    def _sources(self) -> dict[bytes, bytes]:
        shown = (entry for entry in self._entries if entry.kind in SHOWN_FROM_OUTSIDE)
        return {entry.path: os.path.realpath(_place_outside(entry)) for entry in shown}

    @cached_property
    def _others(self) -> frozenset[bytes]:
        # Nothing is below these, or what the entry above them shows.
        kinds = (ViewEntryKind.LINK, ViewEntryKind.FOLDER, ViewEntryKind.EMPTY)
        others = {*SHOWN_FROM_OUTSIDE, *kinds}
        return frozenset(each.path for each in self._entries if each.kind not in others)


def _place_outside(entry: ViewEntry) -> bytes:
    """Return where a person has what the entry shows. Only a socket is elsewhere inside."""
    is_elsewhere = entry.kind is ViewEntryKind.SOCKET and entry.target
    return entry.target if is_elsewhere else entry.path
