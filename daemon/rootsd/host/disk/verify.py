"""Checks, before each answer, that approved roots are still the folders that were approved.

When nothing changed this is one lstat for each root and for each folder above them: a root's
change time (ctime) moves with every change of its entries, owner, mode and place. Only a
difference leads to the full check. What cannot tell by its time, one that changed a moment ago
or a `.git` file that may be written anew, is checked in full each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rootsd.core.inputs import Observation, Sighted, Unsafe
from rootsd.core.model import GitEntry, Identity
from rootsd.core.paths import ancestors
from rootsd.host.disk.identity import identify
from rootsd.host.disk.probe import absent, probe
from rootsd.host.disk.safety import Hazard, Surroundings
from rootsd.host.disk.walk import settled_before

_Seen = tuple[int, int, int]


class _Known(NamedTuple):
    """A root that was in order: change time and device then, its inode is in the identity, and
    whether they suffice to see that it still is.

    There are thousands: what each has of its own takes 150 kB a number.
    """

    changed_ns: int
    device: int
    identity: Identity
    settled: bool


class RootVerifier:
    """Remembers what roots, and the folders above them, looked like when they were in order."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._roots: dict[bytes, _Known] = {}
        self._devices: dict[int, int] = {}
        self._above: dict[bytes, _Seen] = {}
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
        self._settled_before = settled_before()
        refused = self._surroundings.heed_places()
        if refused is not self._refused or self._have_changed(above):
            self._refused = refused
            self._above.clear()
            self._roots.clear()
        observations: list[Observation] = []
        lstat, known_roots = os.lstat, self._roots
        for path, identity in roots.items():
            self.looks += 1
            try:
                found = lstat(path)
            except OSError:
                known_roots.pop(path, None)
                observations.append(absent(path, None, identity.filesystem))
                continue
            known = known_roots.get(path)
            if (
                known is None
                or not known.settled
                or known.changed_ns != found.st_ctime_ns
                or known.device != found.st_dev
                or (known.identity is not identity and known.identity != identity)
                or identity.inode != found.st_ino
            ):
                observations += self._check(path, identity, found)
        return observations

    def _check(self, path: bytes, identity: Identity, found: os.stat_result) -> list[Observation]:
        before = self._roots.pop(path, None)
        try:
            if (hazard := self._hazard(path, found)) is not None:
                return [Unsafe(path, hazard.reason)]
            now = identify(path)
        except OSError:
            return [absent(path, None, identity.filesystem)]
        if not identity.holds_for(now) or _is_git_lost(identity, now):
            return [probe(path, filesystem=identity.filesystem)]
        # `found` is older than the check: a change in between is a difference the next time, once
        # the clock that stamps changes has gone on.
        settled = found.st_ctime_ns < self._settled_before and identity.git is not GitEntry.FILE
        device = self._devices.setdefault(found.st_dev, found.st_dev)
        self._roots[path] = _Known(found.st_ctime_ns, device, identity, settled)
        seen = (found.st_ctime_ns, found.st_dev, found.st_ino)
        if before is None or (before.changed_ns, before.device, before.identity.inode) == seen:
            return []
        fresh = probe(path, filesystem=identity.filesystem)
        return [fresh] if isinstance(fresh, Sighted) else []

    def _hazard(self, path: bytes, found: os.stat_result) -> Hazard | None:
        """As `Surroundings.hazard`, but no ancestor is judged twice."""
        if (own := self._surroundings.of_itself(path, found)) is not None:
            return own
        entry_owner = found.st_uid
        judged: dict[bytes, _Seen] = {}
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
        above = {folder for path in self._roots for folder in ancestors(path)}
        self._above = {path: look for path, look in self._above.items() if path in above}


def _is_git_lost(known: Identity, now: Identity) -> bool:
    """Whether the git data are not there that a `.git` file led to: no link back from them stands
    any more, by which a worktree may be approved with its main checkout."""
    return known.git_target is not None and now.git_target is None
