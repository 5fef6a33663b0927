"""Keep the watches that belong to a path and not to a folder.

They are on each parent, on the folders above it, and on each approved root. They are necessary
because the kernel reports nothing about a folder when a folder above it moves, and because only
the nearest existing folder above a missing parent can show that the parent returns.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from rootsd.core.paths import ancestors
from rootsd.watch.events import Watcher, WatchOutcome, WatchPurpose

_PathWatch = tuple[bytes, WatchPurpose]


class PathWatches:
    """The watches that belong to paths. They are set again when a path has another folder.

    `roots` are the approved roots. The caller never changes that set.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._parents: frozenset[_PathWatch] = frozenset()
        self.roots: AbstractSet[bytes] = frozenset()

    def set_parents(self, parents: Iterable[bytes]) -> None:
        """Set the watches of these parents and of the folders above them, again if necessary."""
        parents = tuple(parents)
        before: frozenset[_PathWatch] | None = None
        # Repeat until nothing changes: a folder that appears before the folder above it is watched
        # causes no event.
        while (watches := self._watch_all(parents)) != before:
            for path, purpose in self._parents - watches:
                self._watcher.unwatch(path, purpose)
            self._parents = before = watches

    def _watch_all(self, parents: Iterable[bytes]) -> frozenset[_PathWatch]:
        """Watch the parents and the folders above them, and return the watches.

        If a folder is missing or unreadable, the watch on the folder above it reports its return.
        """
        watches: set[_PathWatch] = set()
        for parent in parents:
            purpose = WatchPurpose.PARENT
            for path in (parent, *ancestors(parent)):
                watch = (path, purpose)
                if watch in watches or self._has_watched(path, purpose):
                    watches.add(watch)
                    purpose = WatchPurpose.PARENT
                else:
                    purpose = WatchPurpose.ABOVE
        return frozenset(watches)

    def _has_watched(self, path: bytes, purpose: WatchPurpose) -> bool:
        """Watch a folder, and return whether that worked.

        It fails if the folder is being removed at this moment, even if it is still visible.
        """
        if not _is_folder(path) or not os.access(path, os.R_OK):
            return False
        return self._watcher.watch(path, purpose) is not WatchOutcome.GONE

    def set_roots(self, roots: AbstractSet[bytes]) -> None:
        """Watch these roots, and stop watching all others."""
        for path in self.roots - roots:
            self._watcher.unwatch(path, WatchPurpose.ROOT)
        for path in roots - self.roots:
            self._watcher.watch(path, WatchPurpose.ROOT)
        self.roots = roots

    def renew(self, path: bytes) -> None:
        """Set the watches of `path` again, because it may have another folder now."""
        purposes = {purpose for watched, purpose in self._parents if watched == path}
        if path in self.roots:
            purposes.add(WatchPurpose.ROOT)
        for purpose in purposes:
            self._watcher.watch(path, purpose)


def can_watch_for_return(parent: bytes) -> bool:
    """Return whether a watch can report the return of a missing parent.

    It cannot if the user may not read the nearest existing folder above the parent.
    """
    nearest = next(filter(_is_folder, ancestors(parent)), b"/")
    return os.access(nearest, os.R_OK)


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
