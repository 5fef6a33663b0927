"""Watches what no tree holds: the folders above the parents, and the approved roots themselves.

A folder is not told when one above it is moved, and a parent that is missing can only be seen to
return from the nearest folder above it that lives.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from rootsd.core.paths import ancestors
from rootsd.host.watch.events import Purpose, Watcher

_Guard = tuple[bytes, Purpose]


class Guards:
    """The watches that belong to paths rather than to folders: set anew when one moves."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._parents: frozenset[_Guard] = frozenset()
        self._roots: frozenset[bytes] = frozenset()

    def set_parents(self, parents: Iterable[bytes]) -> list[bytes]:
        """Guard these parents; returns those that were missing and came meanwhile."""
        wanted: set[_Guard] = set()
        missing = []
        for parent in parents:
            guards, there = _guards_of(parent)
            wanted |= guards
            if not there:
                missing.append(parent)
        for path, purpose in self._parents - wanted:
            if purpose is not Purpose.ROOT or path not in self._roots:
                self._watcher.unwatch(path, purpose)
        for path, purpose in wanted:
            self._watcher.watch(path, purpose)
        self._parents = frozenset(wanted)
        return [parent for parent in missing if _is_folder(parent)]

    def set_roots(self, roots: frozenset[bytes]) -> None:
        """Watch these folders for what happens to themselves."""
        guarded = {path for path, purpose in self._parents if purpose is Purpose.ROOT}
        for path in self._roots - roots - guarded:
            self._watcher.unwatch(path, Purpose.ROOT)
        for path in roots - self._roots:
            self._watcher.watch(path, Purpose.ROOT)
        self._roots = roots

    def renew(self, path: bytes) -> None:
        """What is at `path` may be another folder now: watch that one instead."""
        purposes = {purpose for guarded, purpose in self._parents if guarded == path}
        if path in self._roots:
            purposes.add(Purpose.ROOT)
        for purpose in purposes:
            self._watcher.watch(path, purpose)


def _guards_of(parent: bytes) -> tuple[set[_Guard], bool]:
    """What to watch for a parent, and whether it is there."""
    there = _is_folder(parent)
    guards = {(parent, Purpose.ROOT)} if there else set()
    nearest = not there
    for above in ancestors(parent):
        if not _is_folder(above):
            continue
        guards.add((above, Purpose.ABOVE if nearest else Purpose.ROOT))
        nearest = False
    return guards, there


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
