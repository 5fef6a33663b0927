"""The view of the static engine: rules of Landlock that are fixed when a program starts.

A rule gives a program rights on a folder and everything in it. A change of the roots cannot reach
a running program. So if a root is lost, the warden ends, and its programs with it. A new root
waits for the next start, with another warden.

Rules only add rights. So a file that must be hidden in a readable folder gets no rule, but all
other files there get one each; files that are made there later are not readable. In a writable
folder nothing can be hidden. A denied folder in the base is hidden in this way. If one is denied
later, the warden ends, as for a lost root. `rootsd.wall.view.fixed_roots` decides which roots can
be given.

A rule belongs to the folder itself, not to its path. A folder that takes its place later gets no
rights, and a folder that is moved keeps them until the daemon has noticed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    DesiredMount,
    ViewEntry,
    ViewEntryKind,
)
from rootsd.core.paths import contains
from rootsd.wall.git.facts import Fact
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.kernel.landlock import NO_DEVICES, READ_ALL, Coverage, Right, Ruleset
from rootsd.wall.kernel.orders import AppliedChange, FailedRoot
from rootsd.wall.kernel.private_folders import PrivateFolders
from rootsd.wall.kernel.root_folder import open_root
from rootsd.wall.kernel.warden import WardenSettings
from rootsd.wall.system_calls import closing
from rootsd.wall.view.denied_base import DENIED, DeniedBase
from rootsd.wall.view.fixed_roots import fixed_roots, missing

_DEVICE = Right.READ_FILE | Right.WRITE_FILE | Right.CONTROL_DEVICE
_CHANGE_ALL = ~NO_DEVICES
_PROC = b"/proc"
_CLOSED = (ViewEntryKind.HIDDEN, ViewEntryKind.COPY)


class FixedView:
    """The rules for one start of a program. `version` is the one of Landlock to use."""

    has_news = False

    def __init__(
        self,
        settings: WardenSettings,
        watch: WallWatch,  # noqa: ARG002 - nothing can be repaired
        version: int,
    ) -> None:
        self.watched = -1
        self.notes: list[str] = []
        self._settings = settings
        self._rules = Ruleset(Coverage.OUTSIDE, version)
        self._base = DeniedBase(settings.entries)
        self._hidden: frozenset[bytes] = frozenset()  # the parts of the base that are denied
        self._shown: dict[bytes, DesiredMount] = {}
        self._failed: dict[bytes, tuple[DesiredMount, str]] = {}
        self._folders: PrivateFolders | None = None

    @property
    def shown(self) -> dict[bytes, DesiredMount]:
        """The roots that programs got at their start."""
        return self._shown

    def build(
        self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]
    ) -> AppliedChange:
        """Make the rules and the program's own folders. Raises OSError."""
        self._hidden = self._denied_parts(denied)
        entries = self._base.entries_without(denied)
        roots = fixed_roots(desired)
        _check_entries(entries, roots.shown.values())
        self._folders = PrivateFolders(self._settings.folder, self._settings.home)
        self._folders.add(entries)
        for own in self._folders.writable:
            self._rules.allow(own, _CHANGE_ALL)
        for entry in entries:
            self._allow_entry(entry, entries)
        for path, mount in roots.shown.items():
            try:
                with closing(open_root(mount)) as folder:
                    is_read = mount.access is Access.READ
                    self._rules.allow_open(folder, READ_ALL if is_read else _CHANGE_ALL)
                self._shown[path] = mount
            except OSError as error:
                self._failed[path] = mount, error.strerror or "it cannot be opened"
        return self.change(desired, denied)

    def change(
        self, desired: Mapping[bytes, DesiredMount], denied: frozenset[bytes]
    ) -> AppliedChange:
        """Compare `desired`, and the base without what is `denied`, with what programs have."""
        hidden = self._denied_parts(denied)
        wanted, refused = fixed_roots(desired)
        failed = {
            path: reason
            for path, (mount, reason) in self._failed.items()
            if wanted.get(path) == mount
        }
        waiting = [path for path in missing(wanted, self._shown) if path not in failed]
        waiting += [path for path in sorted(self._hidden) if not _is_in(path, hidden)]
        newly_denied = [path for path in sorted(hidden) if not _is_in(path, self._hidden)]
        return AppliedChange(
            failed=tuple(FailedRoot(*each) for each in {**refused, **failed}.items()),
            lost=(*missing(self._shown, wanted), *newly_denied),
            waiting=tuple(waiting),
        )

    def give(self, path: bytes, copy: bytes) -> None:  # noqa: ARG002
        """Raise OSError: the rules of a running program are fixed."""
        raise OSError(errno.EOPNOTSUPP, "with --static, programs see no new files")

    def worktree_at(self, path: bytes) -> None:
        """Return None: no root can be taken away for `git worktree remove`."""

    def withdraw(self) -> None:
        """Do nothing: rights cannot be taken from a running program."""

    def repair(self) -> AppliedChange:
        """Do nothing: nothing is watched."""
        return AppliedChange()

    def carry_over(self) -> tuple[Fact, ...]:
        """Return nothing: programs change the settings of git themselves."""
        return ()

    def gates(self) -> list[int]:
        """Return the descriptor of the rules."""
        return [self._rules.take()]

    def variables(self) -> dict[str, str]:
        """Return the variables that lead to the program's own folders."""
        return {} if self._folders is None else self._folders.variables

    def close(self) -> None:
        """Remove the program's own folders."""
        if self._folders is not None:
            self._folders.close()

    def _denied_parts(self, denied: frozenset[bytes]) -> frozenset[bytes]:
        return frozenset(mask.path for mask in self._base.masks(denied))

    def _allow_entry(self, entry: ViewEntry, entries: Iterable[ViewEntry]) -> None:
        match entry.kind:
            case ViewEntryKind.READ | ViewEntryKind.CACHE | ViewEntryKind.TOOLS:
                self._allow_read(entry.path, [*_hidden(entries, entry.path)])
            case ViewEntryKind.WRITE:
                self._rules.allow(entry.path, _CHANGE_ALL)
            case ViewEntryKind.STATE if entry.target:
                self._rules.allow(entry.target, _CHANGE_ALL)
            case ViewEntryKind.DEVICE:
                self._rules.allow(entry.path, _DEVICE)
            case ViewEntryKind.FOLDER if entry.path == _PROC:
                self._rules.allow(entry.path, READ_ALL)
            case _:
                pass

    def _allow_read(self, path: bytes, hidden: list[bytes]) -> None:
        """Let programs read and run `path` and everything in it but `hidden`."""
        if path in hidden:
            return
        inside = [each for each in hidden if contains(path, each)]
        if not inside:
            self._rules.allow(path, READ_ALL)
            return
        self._rules.allow(path, Right.READ_FOLDER)  # this cannot leave out the names in `hidden`
        for name in os.listdir(path):
            child = path + b"/" + name
            with suppress(FileNotFoundError):  # it is gone since
                if not os.path.islink(child):
                    self._allow_read(child, inside)


def _is_in(path: bytes, folders: frozenset[bytes]) -> bool:
    return any(contains(folder, path) for folder in folders)


def _hidden(entries: Iterable[ViewEntry], path: bytes) -> Iterator[bytes]:
    """Yield the paths below `path` to hide, without those that this user cannot read anyway."""
    for entry in entries:
        is_hidden = entry.kind in _CLOSED and contains(path, entry.path)
        if is_hidden and (entry.reason == DENIED or os.access(entry.path, os.R_OK)):
            yield entry.path  # a denied folder that is gone may return


def _check_entries(entries: Iterable[ViewEntry], roots: Iterable[DesiredMount]) -> None:
    """Raise OSError if an entry would open more than it says."""
    closed = {
        each.path: "is denied" if each.reason == DENIED else "is hidden"
        for each in entries
        if each.kind in _CLOSED
    }
    closed |= {each.path: "is read-only" for each in roots if each.access is Access.READ}
    for entry in entries:
        shown = os.fsdecode(entry.path)
        if entry.kind is ViewEntryKind.SOCKET:
            raise OSError(
                errno.EINVAL, f"{shown}: --static refuses all sockets of programs outside"
            )
        if entry.kind in (ViewEntryKind.WRITE, ViewEntryKind.KEPT):
            for path, why in closed.items():
                if contains(entry.path, path):
                    text = f"{os.fsdecode(path)} {why}, but lies in {shown}, which is writable"
                    raise OSError(errno.EINVAL, f"{text}; --static cannot do both")
