"""Know the git directories in the roots that programs may write, and their worktrees.

The git directories at the top of a root, and those of its submodules, are found at once. Others
are searched for in parts, because a root may be large.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rootsd.core.mount_plan import DesiredMount
from rootsd.core.paths import contains
from rootsd.wall.git.directories import (
    WORKTREES,
    common_directories,
    find_repositories,
    find_worktrees,
    search_repositories,
)
from rootsd.wall.git.entries import names_below
from rootsd.wall.git.name_watch import ANY_NAME, APPEARED, NameEvent, WallWatch
from rootsd.wall.kernel.covers import mount_points

_SEARCHED_AT_ONCE = 128


class RootWorktrees:
    """The git directories and the worktrees of shown roots, by the path of the root."""

    def __init__(self, watch: WallWatch) -> None:
        self.names = watch.view(APPEARED | NameEvent.WRITTEN | NameEvent.DELETED)
        """What tells about new and removed worktrees comes from here."""
        self.repositories: dict[bytes, tuple[bytes, ...]] = {}
        """The git directories in each root."""
        self.records: dict[bytes, dict[bytes, bytes]] = {}
        """The worktrees of each root, with git's records of them."""
        # The searches for more git directories that have not ended, and what they have found.
        self._searches: dict[bytes, Iterator[bytes | None]] = {}
        self._unsearched: dict[bytes, int] = {}
        self._deep: dict[bytes, set[bytes]] = {}

    @property
    def paths(self) -> set[bytes]:
        """The paths of all worktrees."""
        return {path for found in self.records.values() for path in found}

    def find(self, desired: DesiredMount, root: int) -> None:
        """Look at the repositories in an open root that is about to be shown, or is."""
        masks = [mask.path for mask in desired.masks]
        near = find_repositories(root, desired.path)
        outermost = dict.fromkeys((*near, *sorted(self._deep.get(desired.path, ()))))
        repositories = tuple(
            common
            for common in common_directories(root, outermost)
            if not any(contains(mask, desired.path + b"/" + common) for mask in masks)
        )
        folders: dict[bytes, dict[bytes, bytes]] = {}
        for common in repositories:
            folders.update(_worktree_names(root, common))
        # Before it looks at the worktrees, so that it misses none.
        self.names.watch_below(desired.path, root, folders)
        found: dict[bytes, bytes] = {}
        for common in repositories:
            found.update(find_worktrees(root, desired.path, common))
        self.repositories[desired.path] = repositories
        self.records[desired.path] = found

    def begin_search(self, path: bytes, root: int) -> None:
        """Have `search_on` search the whole of an open root, except what is mounted in it."""
        self._unsearched[path] = root

    @property
    def is_searching(self) -> bool:
        """Whether `search_on` has something to do."""
        return bool(self._searches or self._unsearched)

    def search_on(self) -> set[bytes]:
        """Search a part of the roots, and return those in which there are more git directories."""
        if self._unsearched:
            mounted = mount_points()  # once for all of them: with 500 roots, this takes 4 ms
            for path, root in self._unsearched.items():
                self._searches[path] = search_repositories(root, path, mounted)
            self._unsearched.clear()
        found = set()
        for path, search in list(self._searches.items()):
            known = self._deep.setdefault(path, set())
            before = len(known)
            part = list(islice(search, _SEARCHED_AT_ONCE))
            for each in part:
                if each is not None and each not in self.repositories[path]:
                    known.add(each)
            if len(known) > before:
                found.add(path)
            if len(part) < _SEARCHED_AT_ONCE:
                del self._searches[path]
        return found

    def forget(self, path: bytes) -> None:
        """Forget a root that is not shown, and the roots in it."""
        for inner in [each for each in self.records if contains(path, each)]:
            del self.records[inner], self.repositories[inner]
            self._searches.pop(inner, None)
            self._unsearched.pop(inner, None)
            self._deep.pop(inner, None)
            self.names.forget(inner)


def _worktree_names(root: int, common: bytes) -> dict[bytes, dict[bytes, bytes]]:
    """Return the folders and names to watch for new worktrees of a git directory.

    Git writes `HEAD` and `commondir` after the `.git` file of the worktree.
    """
    group = common + b"/" + WORKTREES
    names = dict.fromkeys((b"gitdir", b"HEAD", b"commondir"), group)
    own = {group + b"/" + name: names for name in names_below(root, group)}
    return {group: {ANY_NAME: group}, **own}
