"""Watches what no tree holds: the folders above the parents, and the approved roots themselves.

A folder is not told when one above it is moved, and a parent that is missing can only be seen to
return from the nearest folder above it that lives.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from rootsd.core.paths import ancestors
from rootsd.host.watch.events import Purpose, Watched, Watcher

_Guard = tuple[bytes, Purpose]


class Guards:
    """The watches that belong to paths rather than to folders: set anew when one moves.

    `roots` are the approved roots; whoever gave them changes them no more.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._parents: frozenset[_Guard] = frozenset()
        self.roots: AbstractSet[bytes] = frozenset()

    def set_parents(self, parents: Iterable[bytes]) -> None:
        """Guard these parents, and watch each path anew: another folder may be there by now."""
        parents = tuple(parents)
        before: frozenset[_Guard] | None = None
        # What came before the watch on the folder above it was not told.
        while (guards := self._watch_all(parents)) != before:
            for path, purpose in self._parents - guards:
                if purpose is not Purpose.ROOT or path not in self.roots:
                    self._watcher.unwatch(path, purpose)
            self._parents = before = guards

    def _watch_all(self, parents: Iterable[bytes]) -> frozenset[_Guard]:
        """Watch the parents and what is above them: the folder above one that is missing, or
        unreadable, has to tell of it."""
        guards: set[_Guard] = set()
        for parent in parents:
            purpose = Purpose.ROOT
            for path in (parent, *ancestors(parent)):
                guard = (path, purpose)
                if guard in guards or self._has_watched(path, purpose):
                    guards.add(guard)
                    purpose = Purpose.ROOT
                else:
                    purpose = Purpose.ABOVE
        return frozenset(guards)

    def _has_watched(self, path: bytes, purpose: Purpose) -> bool:
        """False where no watch can be: one that is just being removed may still be seen."""
        if not _is_folder(path) or not os.access(path, os.R_OK):
            return False
        return self._watcher.watch(path, purpose) is not Watched.GONE

    def set_roots(self, roots: AbstractSet[bytes]) -> None:
        """Watch these folders for what happens to themselves."""
        guarded = {path for path, purpose in self._parents if purpose is Purpose.ROOT}
        for path in self.roots - roots - guarded:
            self._watcher.unwatch(path, Purpose.ROOT)
        for path in roots - self.roots:
            self._watcher.watch(path, Purpose.ROOT)
        self.roots = roots

    def renew(self, path: bytes) -> None:
        """What is at `path` may be another folder now: watch that one instead."""
        purposes = {purpose for guarded, purpose in self._parents if guarded == path}
        if path in self.roots:
            purposes.add(Purpose.ROOT)
        for purpose in purposes:
            self._watcher.watch(path, purpose)


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
