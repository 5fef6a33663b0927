"""Build the base of the view, and mask denied folders in it.

To mask a denied folder in the base, a cover over it is not enough: it leaves the folder to a
program that has it open. So the whole mount that shows it is replaced by a copy of its original
with the masks. Roots in it are hidden first, and must be shown again. What a mount of the base
shows inside another one belongs to the outer one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rootsd.core.mount_plan import Mask, ViewEntry, ViewEntryKind
from rootsd.core.paths import contains
from rootsd.wall.git.name_watch import NameWatch
from rootsd.wall.kernel import covers
from rootsd.wall.kernel.own_storage import OwnStorage
from rootsd.wall.kernel.points import MountStage, Point, RevokeFailed, end, is_folder
from rootsd.wall.kernel.skeleton import (
    NO_PRIVILEGES,
    OPEN_TO_ALL,
    TMPFS,
    Mounted,
    Skeleton,
)
from rootsd.wall.kernel.stand_ins import StandIns
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    attach,
    attach_copy,
    clone_tree,
    closing,
    mount,
    open_path,
    set_attributes,
)

_MAX_REPAIRS = 100
_ATTRIBUTES = {
    ViewEntryKind.READ: Attribute.READ_ONLY | Attribute.NO_DEVICES,
    ViewEntryKind.WRITE: Attribute.NO_DEVICES,
    ViewEntryKind.SOCKET: Attribute.NO_DEVICES,
    ViewEntryKind.DEVICE: Attribute.NO_EXEC,
}
_GIVEN = Attribute.READ_ONLY | Attribute.NO_DEVICES | Attribute.NO_SUID | Attribute.NO_EXEC
_OWN_FOLDERS = frozenset(
    (ViewEntryKind.STATE, ViewEntryKind.KEPT, ViewEntryKind.CACHE, ViewEntryKind.TOOLS)
)
_IN_MEMORY = (b"/dev/", b"/run/")
"""Where private folders are in memory, as they are outside."""
_NOT_THERE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))


class _BaseMount(NamedTuple):
    """A mount of the base that programs see. `fd` is its root.

    `place` is what it is mounted on. Not its path: a program can rename a private folder above.
    `original` is where a copy without masks is, or empty if nothing was ever masked.
    """

    fd: int
    place: int
    point: Point
    masks: tuple[Mask, ...] = ()
    original: bytes = b""


class BaseView:
    """The mounts of the base that programs see.

    `names` watches the ways to the masks. `hide_roots` hides the roots at and below a path.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        stage: MountStage,
        stand_ins: StandIns,
        names: NameWatch,
        hide_roots: Callable[[bytes], None],
    ) -> None:
        self.notes: list[str] = []
        """What could not be shown as described, for people."""
        self._skeleton = skeleton
        self._stage = stage
        self._stand_ins = stand_ins
        self._names = names
        self._hide_roots = hide_roots
        self._base_mounts: dict[bytes, _BaseMount] = {}
        self._overlays: set[bytes] = set()

    # Entries

    def add(self, entry: ViewEntry, storage: OwnStorage) -> None:
        """Mount an entry. Raises OSError."""
        path = entry.path
        match entry.kind:
            case ViewEntryKind.LINK:
                self._add_link(path, entry.target)
            case ViewEntryKind.FOLDER | ViewEntryKind.EMPTY:
                self._add_folder(entry)
            case ViewEntryKind.PRIVATE:
                self._add_private(path, storage)
            case ViewEntryKind.HIDDEN:
                self._add_hidden(path)
            case ViewEntryKind.PRIVATE_FILE:
                self._add_private_file(path, entry.content)
            case ViewEntryKind.COPY:
                copy = self._stand_ins.new_file(entry.content)
                self._add_bound(path, _ATTRIBUTES[ViewEntryKind.READ], copy)
            case _ if entry.kind in _OWN_FOLDERS:
                self._add_own(entry, storage)
            case _:
                self._add_bound(path, _ATTRIBUTES[entry.kind], entry.target or path)

    def _add_own(self, entry: ViewEntry, storage: OwnStorage) -> None:
        """Mount a folder that differs from what is at its path outside, or a copy of a file."""
        path, attributes = entry.path, Attribute.NO_DEVICES
        if entry.kind is ViewEntryKind.STATE:
            self._add_bound(path, attributes, entry.target or storage.kept_folder(path))
        elif entry.kind is ViewEntryKind.KEPT and not os.path.isdir(path):
            self._add_bound(path, attributes, storage.kept_copy(path))
        elif self._skeleton.above(path) not in self._overlays:  # or it is copy-on-write already
            tree = storage.overlay(path)
            with closing(tree.fd):
                self._add_tree(path, tree.fd, tree.attributes)
            self._overlays.add(path)
        self._stand_ins.own_folders.add(path)

    def _add_link(self, path: bytes, target: bytes) -> None:
        if not os.path.lexists(self._skeleton.root + path):  # a folder that is shown may have it
            os.symlink(target, self._skeleton.new_place(path))

    def _add_folder(self, entry: ViewEntry) -> None:
        if entry.kind is ViewEntryKind.EMPTY:
            with suppress(OSError):  # then the program starts in its home folder
                self._skeleton.make_locked_folder(entry.path)
        else:
            self._skeleton.make_folder(entry.path)

    def _add_hidden(self, path: bytes) -> None:
        """Cover what is at a path. Behind a link of a program, there is nothing from outside."""
        try:
            target = open_path(self._skeleton.root + path)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return
            raise
        with closing(target):
            empty = self._stand_ins.empty_file
            if is_folder(target):
                empty = self._stand_ins.add_mask(b"", path)
            with closing(open_path(empty)) as source:
                attach_copy(source, target, Attribute.READ_ONLY, Depth.ONE)

    def _add_private(self, path: bytes, storage: OwnStorage) -> None:
        self._skeleton.make_folder(path)
        place = self._skeleton.root + path
        if path.startswith(_IN_MEMORY):
            mode = b"mode=1777" if path in OPEN_TO_ALL else b"mode=0700"
            mount(b"rootsd-private", place, TMPFS, NO_PRIVILEGES, mode)
        else:
            own, attributes = (
                storage.private_folder(path),
                Attribute.NO_SUID | Attribute.NO_DEVICES,
            )
            with closing(open_path(own)) as source, closing(open_path(place)) as target:
                attach_copy(source, target, attributes, Depth.ONE)
        self._skeleton.mounted[path] = Mounted.PRIVATE

    def _add_private_file(self, path: bytes, content: bytes) -> None:
        """Write a file into a private folder. Never write where a folder from outside is."""
        above = self._skeleton.above(path)
        is_private = above is not None and self._skeleton.mounted[above] is Mounted.PRIVATE
        if is_private and not os.path.lexists(self._skeleton.root + path):
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            with open(os.open(self._skeleton.new_place(path), flags, 0o600), "wb") as file:
                file.write(content)

    def _add_bound(self, path: bytes, attributes: Attribute, source: bytes) -> None:
        fd = os.open(source, os.O_PATH | os.O_CLOEXEC)
        with closing(fd), closing(clone_tree(fd, Depth.ALL)) as tree:
            self._add_tree(path, tree, attributes)

    def _add_tree(self, path: bytes, tree: int, attributes: Attribute) -> None:
        """Mount a detached tree."""
        above = self._skeleton.above(path)
        if above in self._stand_ins.own_folders:
            self._skeleton.clear_way_below(above, path, stat.S_IFMT(os.fstat(tree).st_mode))
        elif is_folder(tree):
            self._skeleton.make_folder(path)
        else:
            self._skeleton.make_file(path)
        set_attributes(tree, attributes | Attribute.NO_SUID)
        if self._skeleton.is_outside(path):
            with closing(open_path(self._skeleton.root + path)) as target:
                attach(tree, target)
        else:
            with self._base_point(path, tree) as point:
                attach(tree, point.fd)
        if is_folder(tree):
            self._skeleton.mounted[path] = Mounted.BOUND

    def give(self, path: bytes, copy: bytes) -> None:
        """Show a copy of a file, read-only, where programs see nothing. Raises OSError."""
        with closing(open_path(copy, os.O_NOFOLLOW)) as source:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                raise OSError(errno.EINVAL, "the copy is no file")
            self._skeleton.make_place_for_given(path)
            with closing(clone_tree(source, Depth.ONE)) as tree:
                set_attributes(tree, _GIVEN)
                with self._base_point(path, tree) as point:
                    attach(tree, point.fd)

    @contextmanager
    def _base_point(self, path: bytes, like: int) -> Iterator[Point]:
        """Stage a point for a mount of the base. After the block, programs see it."""
        stage = self._stage.place_for(like)
        with self._stage.new_point(path, like) as point:
            yield point
            tree = open_path(stage)
            place = open_path(self._skeleton.root + path)
            attach(point.fd, place)
        self._base_mounts[path] = _BaseMount(tree, place, point)

    # Denied folders

    def close(self) -> None:
        """Close the mounts of the base, which would keep its file systems in use."""
        for each in self._base_mounts.values():
            for fd in (each.fd, each.place, each.point.fd):
                os.close(fd)
        self._base_mounts.clear()

    @property
    def masks(self) -> set[bytes]:
        """What is masked in the base."""
        return {mask.path for each in self._base_mounts.values() for mask in each.masks}

    def set_masks(self, masks: Iterable[Mask]) -> None:
        """Make `masks` those of the base, and hide the roots in each mount that this replaces.

        None of the masks is inside another. Raises RevokeFailed.
        """
        masks = tuple(masks)
        for path, each in self._base_mounts.items():
            wanted = tuple(mask for mask in masks if contains(path, mask.path))
            if wanted != each.masks:
                self._replace(path, wanted)
        self._stand_ins.place_worktrees()

    def repair(self) -> bool:
        """Mask again what lost its mask in the base, and return whether something did.

        Raises RevokeFailed.
        """
        broken = self._broken()
        has_changed = bool(broken)
        for _ in range(_MAX_REPAIRS):
            if not broken:
                return has_changed
            for path in broken:
                self._replace(path, self._base_mounts[path].masks)
            broken = self._broken()
        raise RevokeFailed(broken[0], "it is replaced all the time outside")

    def _broken(self) -> list[bytes]:
        masked = {path: each for path, each in self._base_mounts.items() if each.masks}
        for path in masked:
            self._watch(path)  # a folder on the way may be another one
        return [
            path
            for path, each in masked.items()
            if covers.uncovered(each.fd, _masked_below(path, each.masks))
        ]

    def _replace(self, path: bytes, masks: tuple[Mask, ...]) -> None:
        """Replace a mount of the base by its original with these masks. Raises RevokeFailed."""
        self._hide_roots(path)
        old = self._base_mounts[path]
        old_masks = self._stand_ins.take_base_masks(old.masks)
        try:
            original = old.original or self._stage.copy_of(old.fd)
            source, inside = original, masks
            if masks and masks[0].path == path:  # not a mask on top: a point holds one mount
                source, inside = self._stand_ins.empty_like(old.fd, masks[0]), ()
            with (
                closing(open_path(source)) as found,
                closing(clone_tree(found, Depth.ALL)) as tree,
                self._stage.new_point(path, tree) as point,
            ):
                set_attributes(tree, Attribute(0) if source is original else Attribute.READ_ONLY)
                attach(tree, point.fd)
                for mask in inside:
                    covers.hold_above(tree, mask.path[len(path) + 1 :])
                for mask in inside:
                    self._stand_ins.mask(tree, path, mask, b"")
                end(old.point, path)
                attach(point.fd, old.place)
                new = _BaseMount(os.dup(tree), old.place, point, masks, original)
        except OSError as error:
            raise RevokeFailed(path, error.strerror or "it cannot be replaced") from error
        self._base_mounts[path] = new
        os.close(old.fd)
        for cover in old_masks:
            self._stand_ins.remove_cover(cover)
        self._watch(path)

    def _watch(self, path: bytes) -> None:
        """Watch the names on the way to the masks in a mount of the base."""
        each, watched = self._base_mounts[path], b"base:" + path  # a root may have this path
        folders = covers.names_on_the_way(_masked_below(path, each.masks))
        self._names.watch_below(watched, each.fd, folders)


def _masked_below(path: bytes, masks: Iterable[Mask]) -> list[bytes]:
    """Return the masks in a mount of the base, relative to it. A mask over all of it stays."""
    return [mask.path[len(path) + 1 :] for mask in masks if mask.path != path]
