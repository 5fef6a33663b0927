"""Follow the links from main repositories to their git worktrees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rootsd.core.model import Parent
from rootsd.discovery.candidates import CandidateResult
from rootsd.disk.markers import compile_globs
from rootsd.vcs.git.worktrees import read_worktree_links, worktrees_folder
from rootsd.watch.events import Watcher, WatchPurpose


@dataclass(slots=True)
class _LinkedRepository:
    trees: frozenset[bytes] = frozenset()
    watched: set[bytes] = field(default_factory=set)


class WorktreeTracker:
    """Which worktrees each main repository links to. One thread calls all methods."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._mains: dict[bytes, _LinkedRepository] = {}
        self._owners: dict[bytes, bytes] = {}
        self._cut_off: set[bytes] = set()

    def look(self, main: bytes) -> frozenset[bytes]:
        """The worktrees that `main` links to now.

        Watch first, then look: what is linked in between is told.
        """
        folder = worktrees_folder(main)
        if folder is None:
            self.drop(main)
            return frozenset()
        followed = self._mains.setdefault(main, _LinkedRepository())
        before = followed.trees
        self._watch(main, followed, (folder,))
        links = read_worktree_links(folder)
        # One that is being made gets its link last.
        self._watch(main, followed, links.open)
        self._unwatch(followed, followed.watched - {folder} - links.open)
        followed.trees = read_worktree_links(folder).trees if links.open else links.trees
        self._cut_off |= before - followed.trees
        return followed.trees

    def trees(self, main: bytes) -> frozenset[bytes]:
        """Return the worktrees that `main` linked to when it was looked at last."""
        followed = self._mains.get(main)
        return frozenset() if followed is None else followed.trees

    def told_of_by(self, end: CandidateResult) -> bytes | None:
        """The repository that is to be looked at, now that this is settled: itself, or the one
        whose first worktree it is."""
        if end.has_links or end.path in self._mains:
            return end.path
        return end.main_checkout if end.main_checkout not in self._mains else None

    def leads_to(self, path: bytes) -> bool:
        """Whether a repository that is followed links to a worktree at `path`."""
        return any(path in followed.trees for followed in self._mains.values())

    def mains(self) -> tuple[bytes, ...]:
        """The repositories that are followed."""
        return tuple(self._mains)

    def owner(self, folder: bytes) -> bytes | None:
        """The main repository whose links are kept in `folder`."""
        return self._owners.get(folder)

    def drop(self, main: bytes) -> None:
        """Follow a repository no more: it is gone, or has no worktrees."""
        followed = self._mains.pop(main, None)
        if followed is not None:
            self._unwatch(followed, set(followed.watched))
            self._cut_off |= followed.trees

    def take_cut_off(self) -> list[bytes]:
        """The worktrees that were linked to and are no more, since the last call: they may have
        ended though nothing in them changed."""
        taken, self._cut_off = sorted(self._cut_off), set()
        return taken

    def _watch(self, main: bytes, followed: _LinkedRepository, folders: Iterable[bytes]) -> None:
        for folder in folders:
            # Another folder may be there by now: git removes it with the last link in it.
            self._watcher.watch(folder, WatchPurpose.LINKS)
            followed.watched.add(folder)
            self._owners[folder] = main

    def _unwatch(self, followed: _LinkedRepository, folders: Iterable[bytes]) -> None:
        for folder in folders:
            self._watcher.unwatch(folder, WatchPurpose.LINKS)
            followed.watched.discard(folder)
            self._owners.pop(folder, None)


def is_skipped(path: bytes, parent: Parent) -> bool:
    """Whether the parent's own `skip` names the folder, or one between the two."""
    skipped = compile_globs(parent.skip)
    between = path[len(parent.path) :].strip(b"/").split(b"/")
    return skipped is not None and any(map(skipped.fullmatch, between))
