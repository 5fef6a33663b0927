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

    def set_parents(self, parents: Iterable[bytes]) -> None:
        """Guard these parents, and watch each path anew: another folder may be there by now."""
        parents = tuple(parents)
        wanted = _guards_of(parents)
        while True:
            for path, purpose in wanted:
                self._watcher.watch(path, purpose)
            for path, purpose in self._parents - wanted:
                if purpose is not Purpose.ROOT or path not in self._roots:
                    self._watcher.unwatch(path, purpose)
            self._parents = wanted
            # What came before the watch on the folder above it was not told.
            wanted = _guards_of(parents)
            if wanted == self._parents:
                return

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


def _guards_of(parents: Iterable[bytes]) -> frozenset[_Guard]:
    """What to watch: the folder above one that is missing, or unreadable, has to tell of it."""
    guards: set[_Guard] = set()
    for parent in parents:
        blind = False
        for path in (parent, *ancestors(parent)):
            if not _is_folder(path) or not os.access(path, os.R_OK):
                blind = True
                continue
            guards.add((path, Purpose.ABOVE if blind else Purpose.ROOT))
            blind = False
    return frozenset(guards)


def can_return_heard(parent: bytes) -> bool:
    """Whether the folder in which a missing parent would return can be watched: one that may be
    searched and not read has names that only who asks for them sees."""
    nearest = next(filter(_is_folder, ancestors(parent)), b"/")
    return os.access(nearest, os.R_OK)


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
