"""Follow the links from main repositories to their git worktrees.

A main repository keeps a link to each of its worktrees in `.git/worktrees`. A worktree can be
anywhere, even outside of all parents, so these links are the only way to find it.
`WorktreeTracker` watches the folders with links. It also notes the worktrees that a repository no
longer links to. They are no longer worktrees, although nothing in their own folders changed.

git creates the folder for the links together with the first worktree of a repository. The tracker
notices that at once for approved roots, because their worktrees may inherit the approval: it
watches the Git directory of each of them. Most files that git writes there cause no event.

git writes the link to a worktree last, and again when the worktree moves. So the tracker also
watches the entry of each worktree.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from msgspec import Struct, field

from rootsd.core.model import Parent
from rootsd.discovery.candidate import CandidateResult
from rootsd.disk.markers import compile_globs
from rootsd.vcs.git.worktrees import (
    linked_worktrees,
    main_git_folder,
    worktree_entries,
    worktrees_folder,
)
from rootsd.watch.events import Watcher, WatchOutcome, WatchPurpose


class _LinkedRepository(Struct):
    worktrees: frozenset[bytes] = frozenset()
    watched: set[bytes] = field(default_factory=set)


class WorktreeTracker:
    """The worktrees that each main repository links to. One thread calls all methods."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._mains: dict[bytes, _LinkedRepository] = {}
        self._owner_of: dict[bytes, bytes] = {}
        self._unlinked: set[bytes] = set()
        self._roots: dict[bytes, bytes | None] = {}

    def set_roots(self, roots: AbstractSet[bytes]) -> None:
        """Watch for the first worktree of each of these repositories, and of no others.

        A worktree, and a root without a Git directory, is not watched.
        """
        for path in self._roots.keys() - roots:
            if (folder := self._roots.pop(path)) is not None:
                self._watcher.unwatch(folder, WatchPurpose.LINKS)
                self._owner_of.pop(folder, None)
        for path in roots - self._roots.keys():
            folder = main_git_folder(path)
            if folder is not None and (
                self._watcher.watch(folder, WatchPurpose.LINKS) is WatchOutcome.WATCHED
            ):
                self._owner_of[folder] = path
            self._roots[path] = folder

    def read_links(self, main: bytes) -> frozenset[bytes]:
        """Return the worktrees that `main` links to now, and watch for changes.

        The watch comes first. So a link that is added during the read causes an event.
        """
        folder = worktrees_folder(main)
        if folder is None:
            self.drop(main)
            return frozenset()
        repository = self._mains.setdefault(main, _LinkedRepository())
        before = repository.worktrees
        self._watch(main, repository, (folder,))
        entries = worktree_entries(folder)
        self._watch(main, repository, entries)
        self._unwatch(repository, repository.watched - {folder, *entries})
        repository.worktrees = linked_worktrees(entries)
        self._unlinked |= before - repository.worktrees
        return repository.worktrees

    def linked(self, main: bytes) -> frozenset[bytes]:
        """Return the worktrees that `main` linked to at the last `read_links`."""
        repository = self._mains.get(main)
        return frozenset() if repository is None else repository.worktrees

    def repository_to_follow(self, end: CandidateResult) -> bytes | None:
        """Return the repository whose links to read because of the result `end`, or None.

        This is the project itself, or its main repository if `end` is the first known worktree.
        """
        if end.has_links or end.path in self._mains:
            return end.path
        return end.linked_by if end.linked_by not in self._mains else None

    def links_to(self, path: bytes) -> bool:
        """Return whether a followed repository links to a worktree at `path`."""
        return any(path in repository.worktrees for repository in self._mains.values())

    def mains(self) -> tuple[bytes, ...]:
        """Return the followed repositories."""
        return tuple(self._mains)

    def owner(self, folder: bytes) -> bytes | None:
        """Return the main repository whose links are in `folder`, or None."""
        return self._owner_of.get(folder)

    def drop(self, main: bytes) -> None:
        """Stop following a repository that is gone or has no worktrees."""
        repository = self._mains.pop(main, None)
        if repository is not None:
            self._unwatch(repository, set(repository.watched))
            self._unlinked |= repository.worktrees

    def take_unlinked(self) -> list[bytes]:
        """Return the worktrees that lost their link since the last call."""
        taken, self._unlinked = sorted(self._unlinked), set()
        return taken

    def _watch(self, main: bytes, repository: _LinkedRepository, folders: Iterable[bytes]) -> None:
        for folder in folders:
            # Renew the watch: git removes this folder with the last link, so a new folder may be
            # there now.
            self._watcher.watch(folder, WatchPurpose.LINKS)
            repository.watched.add(folder)
            self._owner_of[folder] = main

    def _unwatch(self, repository: _LinkedRepository, folders: Iterable[bytes]) -> None:
        for folder in folders:
            self._watcher.unwatch(folder, WatchPurpose.LINKS)
            repository.watched.discard(folder)
            self._owner_of.pop(folder, None)


def is_skipped(path: bytes, parent: Parent) -> bool:
    """Return whether the parent's `skip` matches the folder or one above it in the parent."""
    skipped = compile_globs(parent.skip)
    between = path[len(parent.path) :].strip(b"/").split(b"/")
    return skipped is not None and any(map(skipped.fullmatch, between))
