"""Show roots to confined programs, and change them while they run.

The tree lives in a mount namespace of the warden, in the warden's folder. `skeleton` has the view,
which is the root folder of the programs, and `base_view` what programs see without any root.
`points` says how a root is attached and taken away, and `stand_ins` what programs see in place of
what is hidden.

What must not be changed or seen in a root is covered; see `covers`. Mountinfo signals a cover that
the kernel dropped, and `NameWatch` also one that was moved away. `find_broken` finds what lost its
cover, and `repair` covers it again. A file is protected in place. If a folder was replaced, a
program may have opened the new one, so the whole root is hidden and shown again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import DesiredMount, ViewEntryKind
from rootsd.core.paths import ancestors, contains
from rootsd.core.wall import ProtectionPolicy
from rootsd.wall.git.directories import WORKTREES, git_directory_of
from rootsd.wall.git.entries import NodeKind, folders_above, kind_below
from rootsd.wall.git.name_watch import WallWatch
from rootsd.wall.git.named_files import named_by_git, names_some_in
from rootsd.wall.git.protected import ProtectedPath, Protection, find_protected
from rootsd.wall.git.tool_files import (
    tool_files_that_git_tracks,
    tool_names,
    tracked_folders,
)
from rootsd.wall.kernel import covers
from rootsd.wall.kernel.base_view import BaseView
from rootsd.wall.kernel.own_storage import OwnStorage
from rootsd.wall.kernel.points import MountStage, Point, end
from rootsd.wall.kernel.private_settings import PrivateSettings
from rootsd.wall.kernel.root_folder import open_root
from rootsd.wall.kernel.skeleton import INODES, NO_PRIVILEGES, TMPFS, Mounted, Skeleton
from rootsd.wall.kernel.stand_ins import StandIns
from rootsd.wall.kernel.warden import WardenSettings
from rootsd.wall.kernel.worktree_removal import ShownWorktree
from rootsd.wall.kernel.worktrees import RootWorktrees
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    MountFlag,
    Namespace,
    attach,
    change_propagation,
    clone_tree,
    closing,
    detach,
    make_namespaces,
    mount,
    open_path,
    set_attributes,
)

_MEMORY = b"/memory"


class _Shown(NamedTuple):
    """A root that programs see. `fd` is its root folder, `made` the folder made for its path.

    `kept` are files in git's records of worktrees that are not visible; see `settle_records`.

    `protected` has the paths that are protected, and those that were and do not exist now. `below`
    is what is mounted at the path without this root.
    """

    mount: DesiredMount
    fd: int
    point: Point
    made: bytes
    protected: tuple[ProtectedPath, ...]
    below: Mounted | None
    kept: tuple[ProtectedPath, ...] = ()

    @property
    def masks(self) -> Iterator[bytes]:
        """The denied folders, relative to the root."""
        return (mask.path[len(self.mount.path) + 1 :] for mask in self.mount.masks)

    @property
    def covers(self) -> Iterator[bytes]:
        """The paths that must be covered if they exist, relative to the root."""
        yield from (each.path for each in (*self.protected, *self.kept))
        yield from self.masks


class SharedTree:
    """The tree of one warden, in the folder `base`. Call `build` once, in its own process."""

    def __init__(self, base: bytes, settings: WardenSettings, watch: WallWatch) -> None:
        self.names = watch.view()
        """What `find_broken` takes comes from here."""
        self._base = base
        self._entries = settings.entries
        self._policy = settings.protection
        self._skeleton = Skeleton(base)
        self.settings = PrivateSettings(base, self._skeleton, settings.home, watch)
        """The copies of git's settings that programs change."""
        self._stage = MountStage(base)
        self._worktrees = RootWorktrees(watch)
        self._stand_ins = StandIns(base, self._skeleton, self._worktrees)
        self.base = BaseView(
            self._skeleton, self._stage, self._stand_ins, self.names, self._hide_all
        )
        """What programs see without any root."""
        folder = settings.folder
        self.storage = OwnStorage(settings.kept or folder, folder, base + _MEMORY)
        """What programs write outside of roots."""
        self._shown: dict[bytes, _Shown] = {}
        self._writable: list[bytes] = []  # what a person named, also in roots
        self._git_writes: dict[bytes, frozenset[bytes]] = {}
        """By root, the folders of tool files in which git tracked some when the root was shown."""
        self._unchecked: set[bytes] = set()  # roots that may have lost a cover before the watch
        self.root = self._skeleton.root
        """The folder that becomes the root of programs."""
        self.notes = self.base.notes
        """What could not be shown as described, for people."""
        self.worktree_names = self._worktrees.names
        """What tells `place_worktrees` about new worktrees comes from here."""

    def build(self) -> None:
        """Move into new namespaces, and mount the base of the view. Raises OSError."""
        make_namespaces(Namespace.MOUNTS)
        change_propagation(b"/", MountFlag.RECURSIVE | MountFlag.SLAVE)
        mount(b"rootsd", self._base, TMPFS, NO_PRIVILEGES, b"mode=0700," + INODES)
        change_propagation(self._base, MountFlag.PRIVATE)
        self._stage.build()
        self._stand_ins.build()
        self._skeleton.build()
        self.settings.build()
        with self.storage.building():
            for entry in sorted(self._entries, key=lambda each: each.path.count(b"/")):
                self.base.add(entry, self.storage)
                if entry.kind is ViewEntryKind.WRITE:
                    self._writable.append(entry.path)
        self.notes += self.storage.notes()

    def close(self) -> None:
        """Unmount everything, and remove the private folders from the disk."""
        self.base.close()
        with suppress(OSError), closing(open_path(self._base)) as base:
            detach(base)
        self.storage.close()

    # Roots

    @property
    def shown(self) -> dict[bytes, DesiredMount]:
        """The mounts that programs see now, by path."""
        return {path: each.mount for path, each in self._shown.items()}

    @property
    def unwatched(self) -> set[bytes]:
        """The roots in which a change is not noticed at once: no watch was left."""
        return self.names.unwatched | self.worktree_names.unwatched

    def show(self, desired: DesiredMount) -> None:
        """Mount a folder at its own path. It must not be shown. Raises OSError.

        Raises `root_folder.FolderChanged` if another folder is there now.
        """
        self._show(desired, ())

    def _show(self, desired: DesiredMount, known: tuple[ProtectedPath, ...]) -> None:
        """Show a root. `known` was protected in it before."""
        self._git_writes.pop(desired.path, None)
        with closing(open_root(desired)) as source:
            is_open = self._policy is ProtectionPolicy.NONE or desired.access is Access.READ
            found = () if is_open else self._wanted_protection(desired, source)
            protected = covers.merge(known, found)
            attributes = Attribute.NO_SUID | Attribute.NO_DEVICES
            if desired.access is Access.READ:
                attributes |= Attribute.READ_ONLY
                named_by_git(desired.path)  # which may be in other roots
            else:
                self._find_worktrees(desired, source)
            try:
                self._protect_entry_of(desired.path)
                with closing(clone_tree(source, Depth.ALL)) as tree:
                    set_attributes(tree, attributes)
                    with self._stage.new_point(desired.path, tree) as point:
                        attach(tree, point.fd)
                        self._cover(tree, source, desired, protected)
                        self._attach_root(tree, point, desired, protected)
            except OSError:
                self._forget_worktrees(desired.path)
                raise
            self._search(desired.path)
        self._protect_others(desired.path)

    def _protect_entry_of(self, path: bytes) -> None:
        """If a root is a worktree of the root around it, close its entry there from now on."""
        outer = self._skeleton.above(path)
        if outer is None or outer not in self._shown:
            return
        if new := self._new_protection(outer, (path,)):
            self._protect_in_place(outer, new)
            self._watch_new(outer)

    def _wanted_protection(
        self, desired: DesiredMount, root: int, inner: Iterable[bytes] = ()
    ) -> list[ProtectedPath]:
        """Return what to protect in an open root. `inner` are roots that will be shown in it."""

        def is_closed(path: bytes) -> bool:
            masks = (mask.path for mask in desired.masks)
            inside = (each for each in self._shown if each.startswith(desired.path + b"/"))
            return any(
                contains(each, path) or contains(path, each) for each in (*masks, *inner, *inside)
            )

        writable = self._writable_in(desired.path)
        named = named_by_git(desired.path)
        tools = tool_names(root, desired.path, named)
        if self._policy is ProtectionPolicy.UNTRACKED:
            tracked = tool_files_that_git_tracks(desired.path, tools, named)
            if desired.path not in self._git_writes:
                self._git_writes[desired.path] = tracked_folders(tools, tracked)
            writable |= tracked
        return find_protected(root, desired.path, is_closed, tools, writable)

    def _writable_in(self, path: bytes) -> frozenset[bytes]:
        """Return what a person made writable in a root, relative to it."""
        inside = (each for each in self._writable if contains(path, each) and each != path)
        return frozenset(each[len(path) + 1 :] for each in inside)

    def _new_protection(self, path: bytes, inner: Iterable[bytes] = ()) -> list[ProtectedPath]:
        """Return what must be protected in a shown root and is not, outermost first."""
        shown = self._shown[path]
        if not shown.protected:  # a read-only root, or --no-protect
            return []
        with closing(open_root(shown.mount)) as outside:  # a copy is a link in the tree
            wanted = self._wanted_protection(shown.mount, outside, inner)
        # What programs made in such a folder stays writable. To close it would hide the root, and
        # they would lose their working directories.
        theirs = self._git_writes.get(path, ())
        return [
            each
            for each in wanted
            if each not in (*shown.protected, *shown.kept)
            and not any(contains(folder, each.path) for folder in theirs)
        ]

    def _protect_in_place(self, path: bytes, new: Iterable[ProtectedPath]) -> None:
        """Protect more in a shown root. Raises OSError."""
        shown = self._shown[path]
        with closing(open_root(shown.mount)) as outside:
            self._protect(shown.fd, outside, path, new)
        self._shown[path] = shown._replace(protected=covers.merge(shown.protected, new))

    def hide(self, path: bytes) -> None:
        """Unmount a root. Roots inside it go with it. Raises KeyError if it is not shown.

        Raises RevokeFailed.
        """
        for each in (path, *[inner for inner in self._shown if inner.startswith(path + b"/")]):
            shown = self._shown.pop(each)
            if shown.below is None:
                del self._skeleton.mounted[each]
            else:
                self._skeleton.mounted[each] = shown.below
            self.names.forget(each)
            os.close(shown.fd)
            end(shown.point, each)
            self._skeleton.remove_folders(shown.made)
        self._forget_worktrees(path)

    def _hide_all(self, path: bytes) -> None:
        """Hide the roots at and below `path`. Raises RevokeFailed."""
        for inner in sorted(self._shown, key=len):
            if inner in self._shown and contains(path, inner):
                self.hide(inner)

    def _cover(
        self, root: int, outside: int, desired: DesiredMount, protected: Iterable[ProtectedPath]
    ) -> None:
        """Mount the masks and protections of a root. `outside` is its folder without mounts."""
        self._protect(root, outside, desired.path, protected)
        for mask in desired.masks:
            covers.hold_above(root, mask.path[len(desired.path) + 1 :])
        for mask in desired.masks:
            self._stand_ins.mask(root, desired.path, mask, desired.path)

    def _protect(
        self, root: int, outside: int, path: bytes, protected: Iterable[ProtectedPath]
    ) -> None:
        """Mount protections in the tree of a root at `path`. Raises OSError."""
        for each in protected:
            if each.protection is Protection.COPY:
                with suppress(
                    OSError
                ):  # it is too large, or no file any more: nobody may write it
                    self.settings.cover(root, outside, path, each.path)
                    continue
            covers.protect(root, each)

    def _attach_root(
        self, tree: int, point: Point, desired: DesiredMount, protected: tuple[ProtectedPath, ...]
    ) -> None:
        """Move a point, with the tree on it, to the path of a root."""
        made = self._skeleton.make_folders_to(desired.path)
        with closing(open_path(self.root + desired.path, os.O_DIRECTORY)) as target:
            attach(point.fd, target)
        # Not by the path: it may lead elsewhere by now, and nothing could find this mount again.
        fd = os.dup(tree)
        below = self._skeleton.mounted.get(desired.path)
        self._shown[desired.path] = _Shown(desired, fd, point, made, protected, below)
        self._skeleton.mounted[desired.path] = Mounted.BOUND
        self._watch_new(desired.path)

    def find_broken(
        self, changed: Mapping[bytes, set[bytes]] | None = None
    ) -> dict[bytes, set[bytes]]:
        """Return the paths that exist and lost their covers, by root.

        `changed` limits the search to these paths, and those below them, of some roots.
        """
        for path in changed or ():
            if path in self._shown:
                self._watch(path)  # a folder on the way may be another one
        if changed is not None:
            changed = {**changed, **{path: {b""} for path in self._unchecked}}
        self._unchecked.clear()
        if changed is None:
            mounted = covers.mount_points()
            suspects = {
                path: {
                    each for each in shown.covers if self.root + path + b"/" + each not in mounted
                }
                for path, shown in self._shown.items()
            }
        else:
            suspects = {
                path: {
                    each
                    for each in self._shown[path].covers
                    if any(contains(b"/" + name, b"/" + each) for name in names)
                }
                for path, names in changed.items()
                if path in self._shown
            }
        broken = {
            path: covers.uncovered(self._shown[path].fd, names) for path, names in suspects.items()
        }
        return {path: names for path, names in broken.items() if names}

    def repair(self, path: bytes, broken: Iterable[bytes]) -> None:
        """Cover what is now at the `broken` paths of a shown root. Raises OSError."""
        shown = self._shown[path]
        files = {
            each.path: each
            for each in (*shown.protected, *shown.kept)
            if each.kind is NodeKind.FILE
        }
        in_place = [files.get(each) for each in broken]
        for each in in_place:
            if each is None or kind_below(shown.fd, each.path) is not NodeKind.FILE:
                self._show_again(path)
                return
        with closing(open_root(shown.mount)) as outside:
            self._protect(shown.fd, outside, path, filter(None, in_place))
        self._protect_more(path)
        self._protect_others(path)

    def _protect_others(self, path: bytes) -> None:
        """Protect what the settings in a root name in other roots."""
        for other in [*self._shown]:
            if other in self._shown and other != path and names_some_in(path, other):
                with suppress(OSError):  # `MountedView` tries again to show what is missing
                    self._protect_more(other)

    def _protect_more(self, path: bytes) -> None:
        """Protect what settings name in a shown root by now. Raises OSError."""
        new = self._new_protection(path)
        if any(each.kind is NodeKind.FOLDER and not _is_held(each) for each in new):
            self._show_again(path)  # a program may have opened a folder that is new
            return
        self._protect_in_place(path, new)
        self._watch(path)

    def _show_again(self, path: bytes) -> None:
        """Hide a root with the roots inside it, and show them. Raises OSError."""
        known = {
            each: (shown.mount, shown.protected)
            for each, shown in self._shown.items()
            if contains(path, each)
        }
        self.hide(path)
        for each in sorted(known, key=len):
            self._show(*known[each])

    def _watch(self, path: bytes) -> None:
        """Watch the names on the way to all covers of a shown root."""
        shown = self._shown[path]
        wanted = covers.names_on_the_way(shown.covers)
        for common in self._worktrees.repositories.get(path, ()):
            wanted.setdefault(common, {})[WORKTREES] = common + b"/" + WORKTREES
        self.names.watch_below(path, shown.fd, wanted)

    def _watch_new(self, path: bytes) -> None:
        """Watch a root with new covers. The next `find_broken` tells which were lost meanwhile."""
        self._unchecked.add(path)
        self._watch(path)

    # Worktrees

    def worktree_at(self, path: bytes) -> ShownWorktree | None:
        """Return the root at `path` as a worktree of a repository that is shown, too."""
        for above, found in self._worktrees.records.items():
            if path in found and path != above and {path, above} <= self._shown.keys():
                shown = self._shown[path]
                protected = {each.path: each.protection for each in shown.protected}
                uncover = partial(self._uncover, above, found[path])
                return ShownWorktree(
                    shown.mount, self._shown[above].mount, found[path], protected, uncover
                )
        return None

    def _uncover(self, path: bytes, folder: bytes) -> None:
        """Take the covers of a folder in a root away, and forget them, if the root is shown."""
        shown = self._shown.get(path)
        if shown is None:  # it could not be protected meanwhile, so its covers are gone
            return
        inside = {each for each in shown.covers if contains(b"/" + folder, b"/" + each)}
        held = {above for each in inside for above in folders_above(each)}
        for each in sorted(
            {folder, *inside, *held.difference(folders_above(folder))}, reverse=True
        ):
            covers.release(shown.fd, each)
        self._shown[path] = shown._replace(
            protected=tuple(each for each in shown.protected if each.path not in inside),
            kept=tuple(each for each in shown.kept if each.path not in inside),
        )
        self._watch(path)

    def place_worktrees(self, roots: Iterable[bytes]) -> None:
        """Look for new worktrees of the repositories in these roots, and place them."""
        for path in roots:
            if path in self._worktrees.records and path in self._shown:
                known = self._worktrees.repositories[path]
                self._find_worktrees(self._shown[path].mount, self._shown[path].fd)
                if self._worktrees.repositories[path] != known:
                    self._watch(path)

    def _find_worktrees(self, desired: DesiredMount, root: int) -> None:
        """Place the worktrees of the repositories in a root that is about to be shown, or is."""
        self._worktrees.find(desired, root)
        self._stand_ins.place_worktrees()

    def _search(self, path: bytes) -> None:
        """Start to search the whole of a root that is shown."""
        if path in self._worktrees.records:
            self._worktrees.begin_search(path, self._shown[path].fd)

    @property
    def is_searching(self) -> bool:
        """Whether `search_on` has something to do."""
        return self._worktrees.is_searching

    def search_on(self) -> None:
        """Search a part of the roots for git directories, and place the worktrees of new ones."""
        self.place_worktrees(self._worktrees.search_on())

    def settle_records(self) -> None:
        """Protect git's records of the worktrees that are not in their root, also of later ones.

        If a worktree is hidden, nothing else has its index and its HEAD. If it is visible, its
        programs write these two. The folder stays writable, since `git gc` makes a lock in it.
        Raises OSError.
        """
        for path, shown in self._shown.items():
            wanted = tuple(self._records_to_keep(path)) if shown.protected else ()
            if wanted == shown.kept:
                continue
            for each in shown.kept:
                if each not in wanted:
                    covers.release(shown.fd, each.path)
            for each in wanted:
                if each not in shown.kept:
                    covers.hold_above(shown.fd, each.path)
                    covers.protect(shown.fd, each)
            self._shown[path] = shown._replace(kept=wanted)
            self._watch_new(path)

    def _records_to_keep(self, path: bytes) -> Iterator[ProtectedPath]:
        """Yield the files to keep in a root. Those of nested repositories stay as they are.

        To hold the folders above those would keep programs from removing a nested repository.
        """
        shown = self._shown[path]
        protected = {each.path for each in shown.protected}
        own = git_directory_of(shown.fd, path, b"")
        for tree, record in self._worktrees.records.get(path, {}).items():
            if own is None or not contains(b"/" + own, b"/" + record):
                continue
            is_hidden = self._is_hidden(tree)
            links = (b"gitdir", b"commondir") if is_hidden or not contains(path, tree) else ()
            for name in (*links, *((b"HEAD", b"index") if is_hidden else ())):
                file = record + b"/" + name
                if file not in protected and kind_below(shown.fd, file) is NodeKind.FILE:
                    yield ProtectedPath(file, Protection.READ_ONLY, NodeKind.FILE)

    def _is_hidden(self, path: bytes) -> bool:
        """Return whether no root shows what is at `path`."""
        for above in (path, *ancestors(path)):
            if self._stand_ins.mask_at(above) is not None:
                return True
            if above in self._skeleton.mounted:
                return above not in self._shown
        return True

    def _forget_worktrees(self, path: bytes) -> None:
        """Forget the worktrees and masks of a root that is not shown, and of those in it."""
        self._worktrees.forget(path)
        self._stand_ins.drop_masks(path)
        self._stand_ins.place_worktrees()


def _is_held(path: ProtectedPath) -> bool:
    return path.protection is Protection.HELD
