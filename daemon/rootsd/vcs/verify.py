"""Verify before each answer that approved roots are still the approved folders.

When nothing changed this is one lstat for each root and for each folder above them: a root's
change time (ctime) moves with every change of its entries, owner, mode and place. Only a
difference leads to the full check. A root that changed a moment ago is checked in full each time:
its change time cannot tell yet.

A root with a `.git` file depends on other files as well: on that file, on the directory that it
names, and in there on the link back. Each gets an lstat of its own. If one differs, the root is
sighted anew, and `rootsd.core.decide` decides about it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rootsd.core.inputs import Observation, ProjectObserved, ProjectUnsafe
from rootsd.core.model import GitEntry, Identity
from rootsd.core.paths import ancestors
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.identity import identify, read_gitfile
from rootsd.disk.safety import FolderSafety, Hazard
from rootsd.disk.walk import racy_cutoff_ns
from rootsd.vcs.probe import observe_absent, probe

_StatKey = tuple[int, int, int]
_GIT_FILE = b"/.git"


class _VerifiedRoot(NamedTuple):
    """A root that was in order: change time and device then, its inode is in the identity, and
    whether they suffice to see that it still is.

    There are thousands: what each has of its own takes 150 kB a number.
    """

    changed_ns: int
    device: int
    identity: Identity
    settled: bool


class _GitLink(NamedTuple):
    """The files that make a folder a worktree or a submodule, and what lstat(2) said of each.

    Of a folder that git works in, the change time means nothing.
    """

    folders: tuple[tuple[bytes, _StatKey | None], ...]
    files: tuple[tuple[bytes, _StatKey | None], ...]

    @staticmethod
    def of(path: bytes) -> _GitLink:
        """Return what is there now for the root at `path`."""
        target = read_gitfile(path)
        folders = () if target is None or not may_follow(target) else (target,)
        inside = (folder + name for folder in folders for name in (b"/gitdir", b"/commondir"))
        return _GitLink(
            tuple((folder, _stat_key(folder, without_time=True)) for folder in folders),
            tuple((file, _stat_key(file)) for file in (path + _GIT_FILE, *inside)),
        )

    def holds(self) -> bool:
        """Return whether each is as it was."""
        return all(_stat_key(file) == seen for file, seen in self.files) and all(
            _stat_key(folder, without_time=True) == seen for folder, seen in self.folders
        )

    def changed_ns(self) -> int:
        """Return when the newest of the files changed."""
        return max((seen[0] for _, seen in self.files if seen is not None), default=0)


def _stat_key(path: bytes, *, without_time: bool = False) -> _StatKey | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return (0 if without_time else found.st_ctime_ns, found.st_dev, found.st_ino)


class RootVerifier:
    """Remembers what roots, and the folders above them, looked like when they were in order."""

    def __init__(self, surroundings: FolderSafety) -> None:
        self._surroundings = surroundings
        self._roots: dict[bytes, _VerifiedRoot] = {}
        self._links: dict[bytes, _GitLink] = {}
        self._devices: dict[int, int] = {}
        self._above: dict[bytes, _StatKey] = {}
        self._settled_before = 0
        self._refused: object = None
        # Grows with each look at a folder, so that others can tell whether there is progress.
        self.looks = 0

    def verify(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        """What is to be known about `roots` (path to approved identity) before they are told.

        Empty if all hold. A path that was replaced, is gone, out of reach or exposed yields an
        observation; one that changed inside yields a fresh sighting. Raises nothing.
        """
        if self._roots.keys() != roots.keys():
            self._forget_others(roots)
        return self._verify(roots, self._above)

    def verify_more(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        """As `verify`, for some alone, published or about to be: the others stay known."""
        above = {folder for path in roots for folder in ancestors(path)}
        return self._verify(roots, above & self._above.keys())

    def _verify(
        self, roots: Mapping[bytes, Identity], above: Iterable[bytes]
    ) -> list[Observation]:
        self._settled_before = racy_cutoff_ns()
        refused = self._surroundings.heed_places()
        if refused is not self._refused or self._have_changed(above):
            self._refused = refused
            self._above.clear()
            self._roots.clear()
            self._links.clear()
        observations: list[Observation] = []
        lstat, known_roots = os.lstat, self._roots
        for path, identity in roots.items():
            self.looks += 1
            try:
                found = lstat(path)
            except OSError:
                known_roots.pop(path, None)
                self._links.pop(path, None)
                observations.append(observe_absent(path, None, identity.filesystem))
                continue
            known = known_roots.get(path)
            if (
                known is None
                or not known.settled
                or known.changed_ns != found.st_ctime_ns
                or known.device != found.st_dev
                or (known.identity is not identity and known.identity != identity)
                or identity.inode != found.st_ino
                or (identity.git is GitEntry.FILE and not self._keeps_link(path))
            ):
                observations += self._check(path, identity, found)
        return observations

    def _keeps_link(self, path: bytes) -> bool:
        link = self._links.get(path)
        return link is not None and link.holds()

    def _check(self, path: bytes, identity: Identity, found: os.stat_result) -> list[Observation]:
        before = self._roots.pop(path, None)
        link_before = self._links.pop(path, None)
        is_linked = identity.git is GitEntry.FILE
        try:
            if (hazard := self._hazard(path, found)) is not None:
                return [ProjectUnsafe(path, hazard.reason)]
            # Before the rest: what changes in between differs the next time.
            link = _GitLink.of(path) if is_linked else None
            now = identify(path)
        except OSError:
            return [observe_absent(path, None, identity.filesystem)]
        if not identity.holds_for(now) or _lost_git_target(identity, now):
            return [probe(path, filesystem=identity.filesystem)]
        # `found` is older than the check: a change in between is a difference the next time, once
        # the clock that stamps changes has gone on.
        changed_ns = max(found.st_ctime_ns, link.changed_ns() if link else 0)
        settled = changed_ns < self._settled_before
        device = self._devices.setdefault(found.st_dev, found.st_dev)
        self._roots[path] = _VerifiedRoot(found.st_ctime_ns, device, identity, settled)
        seen = (found.st_ctime_ns, found.st_dev, found.st_ino)
        if link is not None:
            self._links[path] = link
        known = before and (before.changed_ns, before.device, before.identity.inode)
        keeps_link = link is None or (link == link_before and settled)
        if keeps_link and known in (None, seen):
            return []
        fresh = probe(path, filesystem=identity.filesystem)
        return [fresh] if isinstance(fresh, ProjectObserved) else []

    def _hazard(self, path: bytes, found: os.stat_result) -> Hazard | None:
        """As `Surroundings.hazard`, but no ancestor is judged twice."""
        if (own := self._surroundings.of_itself(path, found)) is not None:
            return own
        entry_owner = found.st_uid
        judged: dict[bytes, _StatKey] = {}
        for above in ancestors(path):
            if above in self._above:
                break
            look = os.lstat(above)
            hazard = self._surroundings.of_ancestor(above, look, entry_owner)
            if hazard is not None:
                return hazard
            judged[above] = (look.st_mode, look.st_uid, look.st_gid)
            entry_owner = look.st_uid
        self._above |= judged
        return None

    def _have_changed(self, above: Iterable[bytes]) -> bool:
        lstat = os.lstat
        for path in above:
            self.looks += 1
            try:
                found = lstat(path)
            except OSError:
                return True
            mode, owner, group = self._above[path]
            if found.st_mode != mode or found.st_uid != owner or found.st_gid != group:
                return True
            if self._surroundings.is_listed_for_others(path, found):
                return True
        return False

    def _forget_others(self, roots: Mapping[bytes, Identity]) -> None:
        gone = self._roots.keys() - roots.keys()
        if not gone:
            return
        for path in gone:
            del self._roots[path]
            self._links.pop(path, None)
        above = {folder for path in self._roots for folder in ancestors(path)}
        self._above = {path: look for path, look in self._above.items() if path in above}


def _lost_git_target(known: Identity, now: Identity) -> bool:
    """Whether the git data are not there that a `.git` file led to: no link back from them stands
    any more, by which a worktree may be approved with its main checkout."""
    return known.git_target is not None and now.git_target is None
