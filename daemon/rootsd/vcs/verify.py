"""Verify, before each answer, that each root is still the folder that was approved.

If nothing changed, this costs one lstat for each root and for each folder above the roots. Every
change of a root's entries, owner, mode, or path changes its change time (ctime). So the full check
is necessary only if the ctime differs, or if the root changed so recently that another change
could have the same ctime.

A root with a `.git` file also depends on that file, on the directory that it names, and on the
link back in that directory. Each of these gets its own lstat. If one differs, the root is probed
again, and `rootsd.core.decide` finds its verdict again.

An lstat does not tell a file system from another one that was mounted in its place: FUSE gives
both the same numbers, and two images may have all times in common. So the check is the full one
below each point at which something was mounted since. It is always the full one where the file
system has no id of its own, and where one that depends on another machine or program is mounted
inside the root.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rootsd.core.inputs import Observation, ProjectObserved, ProjectUnsafe
from rootsd.core.model import GitEntry, Identity
from rootsd.core.paths import ancestors
from rootsd.disk.file_clock import racy_cutoff_ns
from rootsd.disk.file_systems import local_mount_numbers, names_itself
from rootsd.disk.folder_pins import FolderPins
from rootsd.disk.git_pointer import find_git_directory, read_git_pointer
from rootsd.disk.hung_mounts import follow
from rootsd.disk.identity import identify_open_folder
from rootsd.disk.mounts import process_mounts
from rootsd.disk.reader import OpenFolder
from rootsd.disk.safety import FolderSafety, Hazard
from rootsd.vcs.probe import observe_absent, probe

_StatKey = tuple[int, int, int]
_GIT_FILE = b"/.git"


class _VerifiedRoot(NamedTuple):
    """A root that passed the check: its ctime and device at that time, and its identity.

    `settled` says whether a later change certainly changes the ctime. There may be thousands of
    these objects, and one more number in each takes 150 kB. So the inode is in the identity only.
    """

    changed_ns: int
    device: int
    identity: Identity
    settled: bool


class _GitLink(NamedTuple):
    """The files that make a folder a worktree or a submodule, each with its lstat(2) result.

    `target` is the real path of the git directory. It is resolved again each time only if
    `is_canonical` is False, because then a link on the way may lead elsewhere later. For the git
    directory, the ctime is left out, because it changes with every git command.
    """

    work: bytes
    target: bytes | None
    is_canonical: bool
    folders: tuple[tuple[bytes, _StatKey | None], ...]
    files: tuple[tuple[bytes, _StatKey | None], ...]

    @staticmethod
    def of(path: bytes) -> _GitLink:
        """Return the current link of the root at `path`."""
        target = _git_directory(path)
        folders = () if target is None else (target,)
        inside = (folder + name for folder in folders for name in (b"/gitdir", b"/commondir"))
        return _GitLink(
            path,
            target,
            target == read_git_pointer(path),
            tuple((folder, _stat_key(folder, without_time=True)) for folder in folders),
            tuple((file, _stat_key(file)) for file in (path + _GIT_FILE, *inside)),
        )

    def holds(self) -> bool:
        """Return whether nothing changed."""
        return (
            all(_stat_key(file) == seen for file, seen in self.files)
            and (self.is_canonical or _git_directory(self.work) == self.target)
            and all(_stat_key(folder, without_time=True) == seen for folder, seen in self.folders)
        )

    def changed_ns(self) -> int:
        """Return the newest change time of the files."""
        return max((seen[0] for _, seen in self.files if seen is not None), default=0)


def _git_directory(path: bytes) -> bytes | None:
    try:
        return find_git_directory(path, follow=follow)
    except OSError:
        return None


def _stat_key(path: bytes, *, without_time: bool = False) -> _StatKey | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return (0 if without_time else found.st_ctime_ns, found.st_dev, found.st_ino)


class RootVerifier:
    """Verifies roots, and remembers their state and that of the folders above them."""

    def __init__(self, safety: FolderSafety) -> None:
        self._safety = safety
        self._roots: dict[bytes, _VerifiedRoot] = {}
        self._links: dict[bytes, _GitLink] = {}
        self._pins = FolderPins()
        self._mount_changes = -1
        self._mount_numbers: Mapping[bytes, int | None] = {}
        self._devices: dict[int, int] = {}
        self._above: dict[bytes, _StatKey] = {}
        self._settled_before = 0
        self._refused: object = None
        # The number of lstat calls, so that another thread can see progress.
        self.lstat_calls = 0

    def verify(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        """Return an observation of each root that differs from what was approved. Raises nothing.

        `roots` maps each path to the approved identity. A root differs if it is replaced, gone,
        unreachable, or exposed. A root with another content is observed again, too.
        """
        if self._roots.keys() != roots.keys():
            self._forget_others(roots)
        return self._verify(roots, self._above)

    def verify_more(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        """Do the same as `verify`, but do not forget other roots."""
        above = {folder for path in roots for folder in ancestors(path)}
        return self._verify(roots, above & self._above.keys())

    def _verify(
        self, roots: Mapping[bytes, Identity], above: Iterable[bytes]
    ) -> list[Observation]:
        self._settled_before = racy_cutoff_ns()
        refused = self._safety.refresh_refused_places()
        if refused is not self._refused or self._have_changed(above):
            self._refused = refused
            self._above.clear()
            self._roots.clear()
            self._links.clear()
        self._forget_remounted()
        self._unsettle_around_mounts()
        observations: list[Observation] = []
        lstat, known_roots = os.lstat, self._roots
        for path, identity in roots.items():
            self.lstat_calls += 1
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

    def _forget_remounted(self) -> None:
        """Forget the roots on a mount that is another one now."""
        changes = process_mounts().changes()
        if changes == self._mount_changes:
            return
        self._mount_changes = changes
        before, self._mount_numbers = self._mount_numbers, local_mount_numbers()
        same = {
            point
            for point, number in self._mount_numbers.items()
            if number is not None and before.get(point) == number
        }
        other = (before.keys() | self._mount_numbers.keys()) - same
        for path in [p for p in self._roots if not other.isdisjoint((p, *ancestors(p)))]:
            del self._roots[path]
            self._links.pop(path, None)

    def _unsettle_around_mounts(self) -> None:
        """Have the roots checked in full that contain a mount of another machine or program."""
        for mount in process_mounts().foreign():
            for above in ancestors(mount.point):
                known = self._roots.get(above)
                if known is not None:
                    self._roots[above] = known._replace(settled=False)

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
            # Read the link first. Then the next check notices a change in between.
            link = _GitLink.of(path) if is_linked else None
            now = self._identify(path, identity)
        except OSError:
            return [observe_absent(path, None, identity.filesystem)]
        if not identity.holds_for(now) or _lost_git_target(identity, now):
            return [probe(path, filesystem=identity.filesystem)]
        # `found` is older than the check, so the next check notices a change in between, unless
        # both changes have the same ctime. That is why `settled` exists.
        changed_ns = max(found.st_ctime_ns, link.changed_ns() if link else 0)
        settled = changed_ns < self._settled_before and names_itself(identity.filesystem)
        device = self._devices.setdefault(found.st_dev, found.st_dev)
        self._roots[path] = _VerifiedRoot(found.st_ctime_ns, device, identity, settled)
        seen = (found.st_ctime_ns, found.st_dev)
        if link is not None:
            self._links[path] = link
        known = before and (before.changed_ns, before.device)
        keeps_link = link is None or (link == link_before and changed_ns < self._settled_before)
        if keeps_link and known in (None, seen):
            return []
        fresh = probe(path, filesystem=identity.filesystem)
        return [fresh] if isinstance(fresh, ProjectObserved) else []

    def _identify(self, path: bytes, known: Identity) -> Identity:
        """Identify the folder at `path`. If it is bound to its mount, pin it before.

        Raises the errors of `identify`.
        """
        target = known.git_target
        if target is not None and target.mount is not None:
            leads_to = _git_directory(path)
            if leads_to is not None:
                with OpenFolder(leads_to) as folder:
                    self._pin(path + _GIT_FILE, folder)
        with OpenFolder(path) as folder:
            if known.mount is not None:
                self._pin(path, folder)
            return identify_open_folder(folder)

    def _pin(self, path: bytes, folder: OpenFolder) -> None:
        if folder.failure is None:
            self._pins.pin(path, folder.fd)

    def _hazard(self, path: bytes, found: os.stat_result) -> Hazard | None:
        """Return the hazard as `FolderSafety.hazard` does, but check no folder above twice."""
        if (own := self._safety.folder_hazard(path, found)) is not None:
            return own
        entry_owner = found.st_uid
        checked: dict[bytes, _StatKey] = {}
        for above in ancestors(path):
            if above in self._above:
                break
            entry = os.lstat(above)
            hazard = self._safety.ancestor_hazard(above, entry, entry_owner)
            if hazard is not None:
                return hazard
            checked[above] = (entry.st_mode, entry.st_uid, entry.st_gid)
            entry_owner = entry.st_uid
        self._above |= checked
        return None

    def _have_changed(self, above: Iterable[bytes]) -> bool:
        lstat = os.lstat
        for path in above:
            self.lstat_calls += 1
            try:
                found = lstat(path)
            except OSError:
                return True
            mode, owner, group = self._above[path]
            if found.st_mode != mode or found.st_uid != owner or found.st_gid != group:
                return True
            if self._safety.acl_lets_others_write(path, found):
                return True
        return False

    def _forget_others(self, roots: Mapping[bytes, Identity]) -> None:
        gone = self._roots.keys() - roots.keys()
        if not gone:
            return
        self._pins.keep_only({*roots, *(path + _GIT_FILE for path in roots)})
        for path in gone:
            del self._roots[path]
            self._links.pop(path, None)
        above = {folder for path in self._roots for folder in ancestors(path)}
        self._above = {path: entry for path, entry in self._above.items() if path in above}


def _lost_git_target(known: Identity, now: Identity) -> bool:
    """Return whether the directory that the `.git` file named is gone.

    That directory contains the link back, without which a worktree inherits no approval.
    """
    return known.git_target is not None and now.git_target is None
