"""The view of the engine with namespaces: a shared tree that changes while programs run.

It watches mountinfo, where the kernel signals each change of the mounts, and the names of covered
files. So the warden notices that a protection or a mask is gone because a process outside replaced
the file. Between that moment and the repair, a program inside can write the new file. The window
is the time in which the warden wakes up and mounts again; it depends on the load, and is mostly
below a few milliseconds. If the user has no inotify watch left, it is a second.

A change of the denied folders replaces the mounts of the base that show something of them.

A root that cannot be shown, or not with its protection, is attempted again, after a pause that
grows with each failure. If a root cannot be taken away, the view reports it as lost, and the
warden ends with its programs.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from rootsd.core.mount_plan import DesiredMount, Mask, ViewEntry, ViewEntryKind, difference
from rootsd.core.wall import RevokePolicy
from rootsd.wall.git.facts import Fact
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.kernel import holders
from rootsd.wall.kernel.holders import Foothold, Search
from rootsd.wall.kernel.landlock import AttachedGuarantee, attached_guarantee
from rootsd.wall.kernel.orders import AppliedChange, FailedRoot
from rootsd.wall.kernel.own_storage import remove_private
from rootsd.wall.kernel.points import RevokeFailed
from rootsd.wall.kernel.supervision import Layer
from rootsd.wall.kernel.tree import SharedTree
from rootsd.wall.kernel.warden import TREE, WardenSettings
from rootsd.wall.kernel.worktree_removal import ShownWorktree
from rootsd.wall.system_calls import interval_timer
from rootsd.wall.view.denied_base import DeniedBase

_MAX_HOLDERS = 32
_UNWATCHED_INTERVAL_S = 1
_SEARCH_BEFORE_START_S = 0.25
_MAX_REPAIRS = 100
_FIRST_RETRY_S = 1
_LAST_RETRY_S = 64


class MountedView:
    """The folders that programs see, as mounts. Make it before the standard files are closed.

    `owner` is the process that starts the programs.
    """

    def __init__(self, settings: WardenSettings, watch: WallWatch, owner: int) -> None:
        self.watched = -1
        self._timer = -1
        self._search = -1  # readable while a search goes on
        self._desired: Mapping[bytes, DesiredMount] = {}
        self._within: Mapping[bytes, DesiredMount] = {}  # those that need no mount of their own
        self._base = DeniedBase(settings.entries)
        self._given: tuple[ViewEntry, ...] = ()
        self._masks: tuple[Mask, ...] = ()  # in the base
        self._pause_s = _FIRST_RETRY_S
        self._retry_at = math.inf
        self._settings = settings
        self._tree = SharedTree(settings.folder + TREE, settings, watch)
        self.notes = self._tree.notes
        self._owner = owner
        self._outside = holders.mounts_of_standard_files()

    @property
    def has_news(self) -> bool:
        """Whether something has happened to a name that matters to the view."""
        return self._tree.names.has_news or self._tree.worktree_names.has_news

    @property
    def shown(self) -> dict[bytes, DesiredMount]:
        """The roots and git directories that programs see, by path."""
        mounted = self._tree.shown
        within = self._within.items()
        return {**mounted, **{path: each for path, each in within if each.within in mounted}}

    def build(
        self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]
    ) -> AppliedChange:
        """Move this process into new namespaces, and mount everything.

        Raises OSError and RevokeFailed.
        """
        os.makedirs(self._settings.folder + TREE, 0o700, exist_ok=True)
        remove_private(self._settings.folder)  # of a wall that was killed
        self._tree.build()
        self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._events = select.epoll()
        self._events.register(self._mounts, select.EPOLLPRI)
        self._events.register(self._tree.settings.more, select.EPOLLIN)
        if (requests := self._tree.storage.listener) is not None:
            self._events.register(requests, select.EPOLLIN)
        self.watched = self._events.fileno()
        self._want(desired, denied)
        change = self._apply()
        end = time.monotonic() + _SEARCH_BEFORE_START_S
        while self._tree.is_searching and time.monotonic() < end:
            self._tree.search_on()
        self._plan_search()
        return change

    def change(
        self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]
    ) -> AppliedChange:
        """Mount and unmount until the roots are those of `desired`, and the base shows no other
        part of the `denied` folders.
        """
        self._want(desired, denied)
        self._pause_s = _FIRST_RETRY_S
        self._retry_at = math.inf  # this is an attempt already
        return _ending_if_kept(self._apply)

    def _want(self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]) -> None:
        self._masks = self._base.masks(denied, desired)
        self._within = {path: mount for path, mount in desired.items() if mount.within}
        self._desired = {path: mount for path, mount in desired.items() if not mount.within}

    def _apply(self) -> AppliedChange:
        change = difference(self._tree.shown, self._desired)
        new = (mask.path for mask in self._masks if mask.path not in self._tree.base.masks)
        devices = frozenset(self._devices((*change.remove, *new)))
        self._tree.base.set_masks(self._masks)
        change = difference(self._tree.shown, self._desired)
        # The outer ones go with all inside them. If an inner one went first, programs would have
        # the access of the outer one there for a moment.
        for path in reversed(change.remove):
            if path in self._tree.shown:
                self._tree.hide(path)
        failed = []
        for mount in change.add:
            try:
                self._tree.show(mount)
            except OSError as error:
                failed.append(FailedRoot(mount.path, error.strerror or "it cannot be mounted"))
        self._settle()
        self._plan()
        self._plan_search()
        return AppliedChange(self._with_those_within(failed), self._holders(devices))

    def _with_those_within(self, failed: Iterable[FailedRoot]) -> tuple[FailedRoot, ...]:
        """Return the failures of mounts, and of the roots that they would show."""
        known = {each.path: each for each in failed}
        within = self._within.items()
        return (
            *known.values(),
            *(
                known[each.within]._replace(path=path)
                for path, each in within
                if each.within in known
            ),
        )

    def give(self, path: bytes, copy: bytes) -> None:
        """Show a copy of a file at its path. A later denial of a folder there takes it away.

        Raises OSError.
        """
        self._tree.base.give(path, copy)
        self._given += (ViewEntry(path, ViewEntryKind.READ, "rootsd give"),)
        self._base = DeniedBase((*self._settings.entries, *self._given))

    def worktree_at(self, path: bytes) -> ShownWorktree | None:
        """Return the root at `path` as a worktree of a repository that is shown, too."""
        return self._tree.worktree_at(path)

    def withdraw(self) -> None:
        """Unmount all roots, outermost first."""
        for path in sorted(self._tree.shown, key=len):
            if path in self._tree.shown:
                with suppress(OSError, RevokeFailed):  # the end of the programs does the rest
                    self._tree.hide(path)

    def repair(self) -> AppliedChange:
        """Cover again what was replaced outside, and try again to show what is missing.

        A root that cannot be covered goes away until the next attempt. A part of the search for
        worktrees is done, too: the rest follows soon, so that no revoke waits for it.
        """
        self._tree.storage.serve()
        if self._search >= 0:
            self._tree.search_on()
            self._plan_search()
        # Nobody can tell whether more was due: another poll(2) takes events of mountinfo away.
        return _ending_if_kept(self._repair)

    def _plan_search(self) -> None:
        """Have `repair` called again and again while there is something to search."""
        if self._tree.is_searching and self._search < 0:
            self._search = os.eventfd(1, os.EFD_CLOEXEC)
            self._events.register(self._search, select.EPOLLIN)
        elif self._search >= 0 and not self._tree.is_searching:
            os.close(self._search)  # this takes it out of the events
            self._search = -1

    def _repair(self) -> AppliedChange:
        changed = self._tree.names.changed()
        written = self._tree.worktree_names.changed()
        if changed is None or not changed.keys() <= self._tree.shown.keys():
            self._repair_base()
        self._tree.place_worktrees({*(changed or ()), *(written or ()), *self._tree.unwatched})
        # Only the other sources tell about roots without a watch, and files of other machines.
        is_complete = changed is not None and not self._tree.unwatched
        broken = self._tree.find_broken(changed if is_complete else None)
        failed: dict[bytes, FailedRoot] = {}
        for _ in range(_MAX_REPAIRS):
            if not broken:
                break
            for path, names in broken.items():
                self._repair_root(path, names, failed)
            # It may have been replaced again before it was watched.
            broken = self._tree.find_broken({path: {b""} for path in broken})
        for path in broken:
            self._tree.hide(path)
            failed[path] = FailedRoot(path, "it is replaced all the time outside")
        if not failed and time.monotonic() >= self._retry_at:
            return self._retry()
        self._settle()
        self._plan()
        return AppliedChange(self._with_those_within(failed.values()))

    def _settle(self) -> None:
        with suppress(OSError):  # git outside replaces these files at this moment, and tells
            self._tree.settle_records()

    def _repair_base(self) -> None:
        """Mask again what was replaced outside. Raises RevokeFailed.

        This hides the roots there, so they are shown again.
        """
        if self._tree.base.repair():
            for mount in difference(self._tree.shown, self._desired).add:
                with suppress(OSError):  # `_plan` sets the next attempt
                    self._tree.show(mount)

    def _retry(self) -> AppliedChange:
        missing = self._desired.keys() - self._tree.shown.keys()
        self._pause_s = min(self._pause_s * 2, _LAST_RETRY_S)
        change = self._apply()
        return change._replace(restored=tuple(missing & self._tree.shown.keys()))

    def _repair_root(
        self, path: bytes, broken: set[bytes], failed: dict[bytes, FailedRoot]
    ) -> None:
        if path not in self._tree.shown:
            return  # a root outside it could not be covered
        try:
            self._tree.repair(path, broken)
        except OSError as error:
            if path in self._tree.shown:
                self._tree.hide(path)
            failed[path] = FailedRoot(path, error.strerror or "it cannot be protected")

    def carry_over(self) -> Iterator[Fact]:
        """Carry settings of git over, and yield facts about those that stay inside."""
        self._tree.settings.carry_over(self._tree.shown)
        yield from self._tree.settings.kept()

    def gates(self) -> list[int]:
        """Return descriptors of the user and the mount namespace."""
        return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("user", "mnt")]

    def variables(self) -> dict[str, str]:
        """Return nothing: programs find everything at its usual path."""
        return {}

    def close(self) -> None:
        """Unmount everything, and remove the private folders from the disk."""
        self._tree.close()

    def _plan(self) -> None:
        """Set the time of the next attempt, and of the next look at roots without a watch."""
        if self._desired.keys() <= self._tree.shown.keys():
            self._retry_at = math.inf
        elif self._retry_at == math.inf or time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + self._pause_s
        if self._timer >= 0:
            os.close(self._timer)  # this takes it out of the events
            self._timer = -1
        if self._tree.unwatched or self._retry_at < math.inf:
            pause = _UNWATCHED_INTERVAL_S if self._tree.unwatched else self._pause_s
            self._timer = interval_timer(pause)
            self._events.register(self._timer, select.EPOLLIN)

    def _devices(self, paths: Iterable[bytes]) -> Iterator[int]:
        for path in paths:
            with suppress(OSError):
                yield os.stat(self._tree.root + path).st_dev

    def _holders(self, devices: frozenset[int]) -> tuple[str, ...]:
        if not devices:
            return ()
        search = Search(self._owner, devices, self._outside, _footholds(self._settings.without))
        if self._settings.on_revoke is RevokePolicy.KILL:
            holders.end_holders(search)
            return ()
        found = holders.find_holders(search)
        shown = ((each.pid, each.name.decode("utf-8", "replace")) for each in found[:_MAX_HOLDERS])
        return tuple(f"{pid} {name}" for pid, name in shown)


def _footholds(without: frozenset[Layer]) -> frozenset[Foothold]:
    """Return what lets programs keep a folder, if they run `without` these layers."""
    found = set()
    if Layer.LANDLOCK in without or attached_guarantee() < AttachedGuarantee.FOLDERS:
        found.add(Foothold.FOLDERS)
    if not without.isdisjoint((Layer.MOUNT_CALLS, Layer.SECCOMP)):
        found.add(Foothold.MOUNTS)
    return frozenset(found)


def _ending_if_kept(apply: Callable[[], AppliedChange]) -> AppliedChange:
    """Apply a change. If a program may have kept a root, report that root as lost."""
    try:
        return apply()
    except RevokeFailed as failure:
        return AppliedChange(lost=(failure.path,))
