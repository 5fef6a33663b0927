"""Build the tree of folders that confined programs see, and change it while they run.

The tree lives in a mount namespace of the warden. Below the warden's folder, it keeps three parts:

* `view`: the root folder of the programs. It is a *shared* mount. The namespaces of the programs
  are *slaves* of it, so the kernel repeats each mount and unmount in all of them, at once and in
  one direction. Nobody enters a program's namespace to change it.
* `skeleton`: the empty folders on the way to a mount. It is `view` without the mounts. Programs
  see it read-only, because a program that could rename a folder on the way could move the mounts.
* `points`: one empty folder for each root, its *point*. A read-only mount of the point lies
  between the root and its path. Programs see it nowhere else, and cannot change it. The mounts of
  the base have points, too.
* `stage`: a private place where a root gets its masks and protections before programs see it.
* `originals`: private copies of mounts of the base in which something is masked.

Git removes what it knows about a worktree whose folder does not exist. So each worktree of a shown
repository that exists and is not visible has a *placeholder*: an empty folder at its path, with an
empty file `.git`. Programs cannot change or remove it. Placeholders lie in the skeleton, or in the
empty folder over a denied one. In a private folder, a locked part of the skeleton covers the way
there. A root that is shown lies over its placeholder, so there is no moment without either.

A root is attached whole: there is no moment in which it is visible without its protection. It is
mounted on its point in the stage, and the point is moved to the path with everything on it.

To hide a root, the tree unmounts it lazily, removes the folder of its point, and unmounts the
point. The kernel detaches what is mounted on a removed folder in *every* namespace, also in one
that a program has cut off from the tree. No program can make the removal fail, since none can
write to a point or mount in this namespace. So a failure is a defect, and `RevokeFailed` ends the
wall. The point goes last: where the kernel unmounts a point with a root left on it, it moves that
root to the folder below.

To mask a denied folder in the base, a cover over it is not enough: it leaves the folder to a
program that has it open. So the whole mount that shows it is replaced by a copy of its original
with the masks. Roots in it are hidden first, and must be shown again. What a mount of the base
shows inside another one belongs to the outer one.

What must not be changed or seen in a root is covered; see `covers`. Mountinfo signals a cover that
the kernel dropped, and `NameWatch` also one that was moved away. `find_broken` finds what lost its
cover, and `repair` covers it again. A file is protected in place. If a folder was replaced, a
program may have opened the new one, so the whole root is hidden and shown again.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import (
    DesiredMount,
    Mask,
    ViewEntry,
    ViewEntryKind,
)
from rootsd.core.paths import ancestors, contains
from rootsd.disk.git_pointer import GIT
from rootsd.wall.git.directories import (
    WORKTREES,
    common_directories,
    find_repositories,
    find_worktrees,
    git_directory_of,
    search_repositories,
)
from rootsd.wall.git.name_watch import ANY_NAME, APPEARED, NameEvent, NameWatch
from rootsd.wall.git.protected import (
    NodeKind,
    ProtectedPath,
    Protection,
    ProtectionPolicy,
    find_protected,
    kind_below,
    names_below,
)
from rootsd.wall.kernel import covers
from rootsd.wall.kernel.root_folder import open_root
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    MountFlag,
    Namespace,
    attach,
    attach_copy,
    change_propagation,
    clone_tree,
    closing,
    detach,
    make_namespaces,
    mount,
    open_below,
    open_path,
    set_attributes,
)

VIEW_FOLDER, _SKELETON, _EMPTY = b"/view", b"/skeleton", b"/empty"
_POINTS, _ORIGINALS = b"/points", b"/originals"
_STAGE, _STAGE_FOR_FILES = b"/stage", b"/stage-for-files"
_EMPTY_FILE = _EMPTY + b"/file"
_MAX_REPAIRS = 100
_SEARCHED_AT_ONCE = 128
_TMPFS, _OVERLAY = b"tmpfs", b"overlay"
_NO_PRIVILEGES = MountFlag.NO_SUID | MountFlag.NO_DEVICES
_INODES = b"nr_inodes=1m"
_ATTRIBUTES = {
    ViewEntryKind.READ: Attribute.READ_ONLY | Attribute.NO_DEVICES,
    ViewEntryKind.WRITE: Attribute.NO_DEVICES,
    ViewEntryKind.STATE: Attribute.NO_DEVICES,
    ViewEntryKind.SOCKET: Attribute.NO_DEVICES,
    ViewEntryKind.DEVICE: Attribute.NO_EXEC,
}
_OWN_FOLDERS = frozenset((ViewEntryKind.STATE, ViewEntryKind.KEPT, ViewEntryKind.CACHE))
_OPEN_TO_ALL = frozenset((b"/tmp", b"/var/tmp", b"/dev/shm"))


class _Mounted(Enum):
    """What is mounted over the skeleton at a path."""

    BOUND = "a tree from outside"
    PRIVATE = "a private folder"
    LOCKED = "a part of the skeleton in a private folder"


class RevokeFailed(Exception):
    """An error: a root was hidden, but a program may still have a copy of it.

    The wall must end. This is no OSError, because those of a root let the others go on.
    """

    def __init__(self, path: bytes, why: str) -> None:
        super().__init__(f"{os.fsdecode(path)} could not be taken away: {why}")
        self.path = path


class _Point(NamedTuple):
    """The point of a root: its folder, and an open descriptor of its mount.

    That of a single file in the base is a file.
    """

    folder: bytes
    fd: int


class _BaseMount(NamedTuple):
    """A mount of the base that programs see. `fd` is its root.

    `place` is what it is mounted on. Not its path: a program can rename a private folder above.
    `original` is where a copy without masks is, or empty if nothing was ever masked.
    """

    fd: int
    place: int
    point: _Point
    masks: tuple[Mask, ...] = ()
    original: bytes = b""


class _Shown(NamedTuple):
    """A root that programs see. `fd` is its root folder, `made` the folder made for its path.

    `kept` are files in git's records of worktrees that are not visible; see `settle_records`.

    `protected` has the paths that are protected, and those that were and do not exist now. `below`
    is what is mounted at the path without this root.
    """

    mount: DesiredMount
    fd: int
    point: _Point
    made: bytes
    protected: tuple[ProtectedPath, ...]
    below: _Mounted | None
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

    def __init__(self, base: bytes, policy: ProtectionPolicy) -> None:
        self.root = base + VIEW_FOLDER
        """The folder that becomes the root of programs."""
        self.notes: list[str] = []
        """What could not be shown as described, for people."""
        self._base = base
        self._policy = policy
        self._skeleton = base + _SKELETON
        self._mounted: dict[bytes, _Mounted] = {}
        self._shown: dict[bytes, _Shown] = {}
        self._base_mounts: dict[bytes, _BaseMount] = {}
        self._made = 0  # the number of points and masks so far, for their names
        self.names = NameWatch()
        """What `find_broken` takes comes from here."""
        self.worktree_names = NameWatch(APPEARED | NameEvent.WRITTEN)
        """What tells `place_worktrees` about new worktrees comes from here."""
        # The git directories in each root, and their worktrees.
        self._repositories: dict[bytes, tuple[bytes, ...]] = {}
        self._worktrees: dict[bytes, dict[bytes, bytes]] = {}  # and git's records of them
        self._unchecked: set[bytes] = set()  # roots that may have lost a cover before the watch
        # The searches for more git directories that have not ended, and what they have found.
        self._searches: dict[bytes, Iterator[bytes | None]] = {}
        self._deep: dict[bytes, set[bytes]] = {}
        self._placeholders: dict[bytes, bytes] = {}  # where they lie, by the worktree's path
        # The folders over what is denied or hidden, by its path and the root that hides it.
        self._masks: dict[bytes, dict[bytes, bytes]] = {}
        self._own_folders: set[bytes] = set()  # trees that differ from those outside
        self._unwatched: set[bytes] = set()  # roots with covers
        self._unwatched_worktrees: set[bytes] = set()

    def build(self, entries: Iterable[ViewEntry], layers: bytes) -> None:
        """Move into new namespaces, and mount the base of the view. Raises OSError.

        `layers` is a folder for the changes to copy-on-write folders.
        """
        make_namespaces(Namespace.MOUNTS)
        change_propagation(b"/", MountFlag.RECURSIVE | MountFlag.SLAVE)
        mount(b"rootsd", self._base, _TMPFS, _NO_PRIVILEGES, b"mode=0700," + _INODES)
        change_propagation(self._base, MountFlag.PRIVATE)
        for name in (VIEW_FOLDER, _SKELETON, _POINTS, _ORIGINALS, _STAGE, _EMPTY):
            os.mkdir(self._base + name, 0o755)
        for name in (_EMPTY_FILE, _STAGE_FOR_FILES):
            os.close(os.open(self._base + name, os.O_CREAT | os.O_WRONLY, 0o444))
        mount(b"rootsd", self._skeleton, _TMPFS, _NO_PRIVILEGES, b"mode=0755," + _INODES)
        self._attach_copy(self._skeleton, self.root, Attribute.READ_ONLY, Depth.ONE)
        change_propagation(self.root, MountFlag.SHARED)
        for entry in sorted(entries, key=lambda each: each.path.count(b"/")):
            self._add_entry(entry, layers)

    # Roots

    @property
    def shown(self) -> dict[bytes, DesiredMount]:
        """The mounts that programs see now, by path."""
        return {path: each.mount for path, each in self._shown.items()}

    @property
    def unwatched(self) -> set[bytes]:
        """The roots in which a change is not noticed at once: no watch was left."""
        return self._unwatched | self._unwatched_worktrees

    def show(self, desired: DesiredMount) -> None:
        """Mount a folder at its own path. It must not be shown. Raises OSError.

        Raises `root_folder.FolderChanged` if another folder is there now.
        """
        self._show(desired, ())

    def _show(self, desired: DesiredMount, known: tuple[ProtectedPath, ...]) -> None:
        """Show a root. `known` was protected in it before."""
        with closing(open_root(desired)) as source:
            protects = (
                self._policy is ProtectionPolicy.PROTECT and desired.access is Access.READ_WRITE
            )
            found = self._wanted_protection(desired, source) if protects else ()
            protected = covers.merge(known, found)
            attributes = Attribute.NO_SUID | Attribute.NO_DEVICES
            if desired.access is Access.READ:
                attributes |= Attribute.READ_ONLY
            else:
                self._find_worktrees(desired, source)
            try:
                self._protect_entry_of(desired.path)
                with closing(clone_tree(source, Depth.ALL)) as tree:
                    set_attributes(tree, attributes)
                    with self._staged_point(desired.path, tree) as point:
                        attach(tree, point.fd)
                        self._cover(tree, desired, protected)
                        self._attach_root(tree, point, desired, protected)
            except OSError:
                self._forget_worktrees(desired.path)
                raise
            self._search(desired.path)

    def _protect_entry_of(self, path: bytes) -> None:
        """If a root is a worktree of the root around it, close its entry there from now on."""
        outer = next((each for each in ancestors(path) if each in self._mounted), b"")
        if outer in self._shown and (new := self._new_protection(outer, (path,))):
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

        return find_protected(root, desired.path, is_closed)

    def _new_protection(self, path: bytes, inner: Iterable[bytes] = ()) -> list[ProtectedPath]:
        """Return what must be protected in a shown root and is not, outermost first."""
        shown = self._shown[path]
        if not shown.protected:  # a read-only root, or --no-protect
            return []
        wanted = self._wanted_protection(shown.mount, shown.fd, inner)
        return [each for each in wanted if each not in (*shown.protected, *shown.kept)]

    def _protect_in_place(self, path: bytes, new: Iterable[ProtectedPath]) -> None:
        """Protect more in a shown root. Raises OSError."""
        shown = self._shown[path]
        for each in new:
            covers.protect(shown.fd, each)
        self._shown[path] = shown._replace(protected=covers.merge(shown.protected, new))

    def hide(self, path: bytes) -> None:
        """Unmount a root. Roots inside it go with it. Raises KeyError if it is not shown.

        Raises RevokeFailed.
        """
        for each in (path, *[inner for inner in self._shown if inner.startswith(path + b"/")]):
            shown = self._shown.pop(each)
            if shown.below is None:
                del self._mounted[each]
            else:
                self._mounted[each] = shown.below
            self.names.forget(each)
            self._unwatched.discard(each)
            os.close(shown.fd)
            _end(shown.point, each)
            self._remove_folders(shown.made)
        self._forget_worktrees(path)

    def place_worktrees(self, roots: Iterable[bytes]) -> None:
        """Look for new worktrees of the repositories in these roots, and place them."""
        for path in roots:
            if path in self._worktrees and path in self._shown:
                known = self._repositories[path]
                self._find_worktrees(self._shown[path].mount, self._shown[path].fd)
                if self._repositories[path] != known:
                    self._watch(path)

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
            covers.protect(shown.fd, each)
        # The new settings may name other files.
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
        self._unwatched.discard(path)
        shown = self._shown[path]
        with ExitStack() as stack:
            folders = []
            wanted = covers.names_on_the_way(shown.covers)
            for common in self._repositories.get(path, ()):
                wanted.setdefault(common, {})[WORKTREES] = common + b"/" + WORKTREES
            for folder, names in wanted.items():
                with suppress(OSError):  # if it appears, the folder above tells
                    fd = open_below(shown.fd, folder, os.O_DIRECTORY)
                    folders.append((stack.enter_context(closing(fd)), names))
            if not self.names.watch(path, folders):
                self._unwatched.add(path)

    def _watch_new(self, path: bytes) -> None:
        """Watch a root with new covers. The next `find_broken` tells which were lost meanwhile."""
        self._unchecked.add(path)
        self._watch(path)

    # Denied folders in the base

    @property
    def base_masks(self) -> set[bytes]:
        """What is masked in the base."""
        return {mask.path for each in self._base_mounts.values() for mask in each.masks}

    def mask_base(self, masks: Iterable[Mask]) -> None:
        """Make `masks` those of the base, and hide the roots in each mount that this replaces.

        None of the masks is inside another. Raises RevokeFailed.
        """
        masks = tuple(masks)
        for path, each in self._base_mounts.items():
            wanted = tuple(mask for mask in masks if contains(path, mask.path))
            if wanted != each.masks:
                self._replace(path, wanted)
        self._place_worktrees()

    def repair_base(self) -> bool:
        """Mask again what lost its mask in the base, and return whether something did.

        Raises RevokeFailed.
        """
        broken = self._broken_base()
        has_changed = bool(broken)
        for _ in range(_MAX_REPAIRS):
            if not broken:
                return has_changed
            for path in broken:
                self._replace(path, self._base_mounts[path].masks)
            broken = self._broken_base()
        raise RevokeFailed(broken[0], "it is replaced all the time outside")

    def _broken_base(self) -> list[bytes]:
        masked = {path: each for path, each in self._base_mounts.items() if each.masks}
        for path in masked:
            self._watch_base(path)  # a folder on the way may be another one
        return [
            path
            for path, each in masked.items()
            if covers.uncovered(each.fd, _masked_below(path, each.masks))
        ]

    def _replace(self, path: bytes, masks: tuple[Mask, ...]) -> None:
        """Replace a mount of the base by its original with these masks. Raises RevokeFailed."""
        for inner in sorted(self._shown, key=len):
            if inner in self._shown and contains(path, inner):
                self.hide(inner)
        old = self._base_mounts[path]
        old_covers = [
            self._masks[mask.path].pop(b"")
            for mask in old.masks
            if b"" in self._masks.get(mask.path, {})
        ]
        try:
            original = old.original or self._copy_of(old.fd)
            source, inside = original, masks
            if masks and masks[0].path == path:  # not a mask on top: a point holds one mount
                source, inside = self._empty_like(old.fd, masks[0]), ()
            with (
                closing(open_path(source)) as found,
                closing(clone_tree(found, Depth.ALL)) as tree,
                self._staged_point(path, tree) as point,
            ):
                set_attributes(tree, Attribute(0) if source is original else Attribute.READ_ONLY)
                attach(tree, point.fd)
                for mask in inside:
                    covers.hold_above(tree, mask.path[len(path) + 1 :])
                for mask in inside:
                    self._mask(tree, path, mask, b"")
                _end(old.point, path)
                attach(point.fd, old.place)
                new = _BaseMount(os.dup(tree), old.place, point, masks, original)
        except OSError as error:
            raise RevokeFailed(path, error.strerror or "it cannot be replaced") from error
        self._base_mounts[path] = new
        os.close(old.fd)
        for cover in old_covers:
            self._remove_cover(cover)
        self._watch_base(path)

    def _copy_of(self, tree: int) -> bytes:
        """Mount a copy of a tree where programs do not see it, and return where."""
        self._made += 1
        place = self._base + _ORIGINALS + b"/%d" % self._made
        _make_point(place, tree)
        with closing(open_path(place)) as target, closing(clone_tree(tree, Depth.ALL)) as copy:
            set_attributes(copy, Attribute(0))
            attach(copy, target)
        return place

    def _watch_base(self, path: bytes) -> None:
        """Watch the names on the way to the masks in a mount of the base."""
        each, watched = self._base_mounts[path], b"base:" + path  # a root may have this path
        folders = covers.names_on_the_way(_masked_below(path, each.masks))
        with ExitStack() as stack:
            found = []
            for folder, names in folders.items():
                with suppress(OSError):  # if it appears, the folder above tells
                    fd = open_below(each.fd, folder, os.O_DIRECTORY)
                    found.append((stack.enter_context(closing(fd)), names))
            if self.names.watch(watched, found):
                self._unwatched.discard(watched)
            else:
                self._unwatched.add(watched)

    # Worktrees

    def _find_worktrees(self, desired: DesiredMount, root: int) -> None:
        """Place the worktrees of the repositories in a root that is about to be shown, or is."""
        masks = [mask.path for mask in desired.masks]
        near = find_repositories(root, desired.path)
        outermost = dict.fromkeys((*near, *sorted(self._deep.get(desired.path, ()))))
        repositories = tuple(
            common
            for common in common_directories(root, outermost)
            if not any(contains(mask, desired.path + b"/" + common) for mask in masks)
        )
        found: dict[bytes, bytes] = {}
        with ExitStack() as stack:
            folders = []
            for common in repositories:
                for folder, names in _worktree_names(root, common).items():
                    with suppress(OSError):  # if it appears, the folder above tells
                        fd = open_below(root, folder, os.O_DIRECTORY)
                        folders.append((stack.enter_context(closing(fd)), names))
                found.update(find_worktrees(root, desired.path, common))
            if self.worktree_names.watch(desired.path, folders):
                self._unwatched_worktrees.discard(desired.path)
            else:
                self._unwatched_worktrees.add(desired.path)
        self._repositories[desired.path] = repositories
        self._worktrees[desired.path] = found
        self._place_worktrees()

    def _search(self, path: bytes) -> None:
        """Start to search the whole of a root that is shown."""
        if path in self._worktrees:
            mounted = covers.mount_points()
            self._searches[path] = search_repositories(self._shown[path].fd, path, mounted)

    @property
    def is_searching(self) -> bool:
        """Whether `search_on` has something to do."""
        return bool(self._searches)

    def search_on(self) -> None:
        """Search a part of the roots for git directories, and place the worktrees of new ones."""
        found = set()
        for path, search in list(self._searches.items()):
            known = self._deep.setdefault(path, set())
            before = len(known)
            part = list(islice(search, _SEARCHED_AT_ONCE))
            for each in part:
                if each is not None and each not in self._repositories[path]:
                    known.add(each)
            if len(known) > before:
                found.add(path)
            if len(part) < _SEARCHED_AT_ONCE:
                del self._searches[path]
        self.place_worktrees(found)

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
        for tree, record in self._worktrees.get(path, {}).items():
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
            if self._mask_at(above) is not None:
                return True
            if above in self._mounted:
                return above not in self._shown
        return True

    def _forget_worktrees(self, path: bytes) -> None:
        """Forget the worktrees and masks of a root that is not shown, and of those in it."""
        for inner in [each for each in self._worktrees if contains(path, each)]:
            del self._worktrees[inner], self._repositories[inner]
            self._searches.pop(inner, None)
            self._deep.pop(inner, None)
            self._unwatched_worktrees.discard(inner)
            self.worktree_names.forget(inner)
        self._drop_masks(path)
        self._place_worktrees()

    def _place_worktrees(self) -> None:
        """Make the placeholders those of all worktrees that are not visible."""
        wanted = self._wanted_worktrees()
        for path in self._placeholders.keys() - wanted:
            self._remove_placeholder(path)
        for path in sorted(wanted - self._placeholders.keys()):
            with suppress(OSError):  # a program has put a link there
                self._add_placeholder(path)

    def _wanted_worktrees(self) -> set[bytes]:
        return {path for found in self._worktrees.values() for path in found}

    def _add_placeholder(self, path: bytes) -> None:
        """Make the placeholder of a worktree, unless it is visible. Raises OSError."""
        above = next(
            (
                each
                for each in (path, *ancestors(path))
                if self._masks.get(each) or each in self._mounted
            ),
            b"/",
        )
        place = self._skeleton + path
        if (mask := self._mask_at(above)) is not None:
            place = mask + path[len(above) :]
        elif self._mounted.get(above) in (_Mounted.BOUND, _Mounted.PRIVATE):
            is_own = above in self._own_folders or self._mounted[above] is _Mounted.PRIVATE
            if not is_own or self._is_visible(path + b"/" + GIT):
                return
            place = self._place_in_own_folder(above, path)
        _make_placeholder(place)
        self._placeholders[path] = place

    def _place_in_own_folder(self, above: bytes, path: bytes) -> bytes:
        """Return where to make a placeholder in a folder in which programs can write."""
        if path == above:
            return self.root + path
        first = _first_below(above, path)
        with suppress(OSError):
            if os.listdir(self.root + first):  # what the program has made there must stay
                return self.root + path
        self._clear_way(first)
        self._lock(first)
        return self._skeleton + path

    def _is_visible(self, path: bytes) -> bool:
        """Return whether programs see a file at `path`."""
        try:
            os.close(open_path(self.root + path, os.O_NOFOLLOW))
        except OSError:
            return False
        return True

    def _remove_placeholder(self, path: bytes) -> None:
        """Remove a placeholder, and the empty folders above it."""
        place = self._placeholders.pop(path)
        with suppress(OSError):
            with closing(open_path(place, os.O_DIRECTORY)) as folder:
                os.unlink(GIT, dir_fd=folder)
            if not place.startswith(self._skeleton):
                return
            while path != b"/" and path not in self._mounted:
                os.rmdir(self._skeleton + path)
                path = os.path.dirname(path)

    def _add_mask(self, root: bytes, path: bytes, inner: Iterable[bytes] = ()) -> bytes:
        """Make the empty folder over what `root` hides at `path`, and return where it is.

        It has the mount points `inner` and the placeholders that must be in it.
        """
        self._made += 1
        cover = self._base + _EMPTY + b"/%d" % self._made
        os.mkdir(cover, 0o755)
        for each in inner:
            os.makedirs(cover + each[len(path) :], exist_ok=True)
        self._masks.setdefault(path, {})[root] = cover
        for each in self._wanted_worktrees():
            if contains(path, each):
                with suppress(OSError):
                    _make_placeholder(cover + each[len(path) :])
                    self._placeholders[each] = cover + each[len(path) :]
        return cover

    def _mask_at(self, path: bytes) -> bytes | None:
        """Return the folder over what is hidden at `path`: the innermost root covers others."""
        by_root = self._masks.get(path)
        return by_root[max(by_root, key=len)] if by_root else None

    def _drop_masks(self, root: bytes) -> None:
        """Forget the folders over what `root` and the roots in it hide: they are not mounted."""
        for by_root in self._masks.values():
            for inner in [each for each in by_root if contains(root, each)]:
                self._remove_cover(by_root.pop(inner))

    def _remove_cover(self, cover: bytes) -> None:
        """Remove the folder that was over something hidden."""
        for path, place in list(self._placeholders.items()):
            if contains(cover, place):
                del self._placeholders[path]
        shutil.rmtree(cover, ignore_errors=True)

    @contextmanager
    def _staged_point(self, path: bytes, like: int) -> Iterator[_Point]:
        """Attach a new point to the stage: a folder or a file, as `like`.

        The block mounts a tree on it and moves it. Nothing can be mounted into a detached tree. To
        copy the tree later and unmount it here would be slower, because an unmount waits until no
        processor uses the mount.
        """
        self._made += 1
        folder = self._base + _POINTS + b"/%d" % self._made
        _make_point(folder, like)
        with closing(open_path(folder)) as source:
            point = _Point(folder, clone_tree(source, Depth.ONE))
        try:
            set_attributes(point.fd, Attribute.READ_ONLY)
            place = _STAGE if _is_folder(like) else _STAGE_FOR_FILES
            with closing(open_path(self._base + place)) as stage:
                attach(point.fd, stage)
            yield point
        except BaseException:
            _end(point, path)
            raise

    def _cover(
        self, root: int, desired: DesiredMount, protected: tuple[ProtectedPath, ...]
    ) -> None:
        """Mount the masks and protections of a root."""
        for each in protected:
            covers.protect(root, each)
        for mask in desired.masks:
            covers.hold_above(root, mask.path[len(desired.path) + 1 :])
        for mask in desired.masks:
            self._mask(root, desired.path, mask, desired.path)

    def _mask(self, tree: int, path: bytes, mask: Mask, owner: bytes) -> None:
        """Cover a denied folder in the tree of `path`, for the root `owner` or the base."""
        made: dict[bool, bytes] = {}

        def empty_like(point: int) -> bytes:
            is_folder = _is_folder(point)
            if is_folder not in made:  # it may be asked again, if the folder is just replaced
                made[is_folder] = self._empty_like(point, mask, owner)
            return made[is_folder]

        covers.mask(tree, mask.path[len(path) + 1 :], empty_like)

    def _empty_like(self, fd: int, mask: Mask, owner: bytes = b"") -> bytes:
        """Return an empty folder or file to show in place of what is open as `fd`."""
        if not _is_folder(fd):
            return self._base + _EMPTY_FILE
        return self._add_mask(owner, mask.path, mask.inner)

    def _attach_root(
        self, tree: int, point: _Point, desired: DesiredMount, protected: tuple[ProtectedPath, ...]
    ) -> None:
        """Move a point, with the tree on it, to the path of a root."""
        made = self._make_folders_to(desired.path)
        with closing(open_path(self.root + desired.path, os.O_DIRECTORY)) as target:
            attach(point.fd, target)
        # Not by the path: it may lead elsewhere by now, and nothing could find this mount again.
        fd = os.dup(tree)
        below = self._mounted.get(desired.path)
        self._shown[desired.path] = _Shown(desired, fd, point, made, protected, below)
        self._mounted[desired.path] = _Mounted.BOUND
        self._watch_new(desired.path)

    # Mount points

    def _make_folders_to(self, path: bytes) -> bytes:
        """Make the folder to mount a root on, and return where it was made."""
        above = next((each for each in ancestors(path) if each in self._mounted), None)
        match self._mounted.get(above or b""):
            case _Mounted.BOUND:
                assert above is not None
                with closing(open_path(self.root + above)) as outer:
                    covers.hold_above(outer, path[len(above) + 1 :])
                return b""  # the folder outside is the mount point
            case _Mounted.PRIVATE:
                assert above is not None
                first = _first_below(above, path)
                self._clear_way(first)
                if first == path:
                    return self.root + path
                self._lock(first)
            case _Mounted.LOCKED | None:
                pass
        os.makedirs(self._skeleton + path, exist_ok=True)
        return self._skeleton + path

    def _clear_way(self, path: bytes) -> None:
        """Make a folder in a private folder, where a program may have put anything.

        A link that a program put there would lead to the files outside, since this process sees
        them. So no link is followed.
        """
        folder, name = os.path.split(path)
        with closing(open_path(self.root + folder, os.O_DIRECTORY)) as above:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=above, follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode):
                    os.rename(name, name + b".hidden", src_dir_fd=above, dst_dir_fd=above)
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=above)

    def _lock(self, path: bytes) -> None:
        """Cover a folder of a private folder by one in which nothing can be made or moved."""
        os.makedirs(self._skeleton + path, exist_ok=True)
        self._attach_copy(self._skeleton + path, self.root + path, Attribute.READ_ONLY, Depth.ONE)
        self._mounted[path] = _Mounted.LOCKED

    def _remove_folders(self, made: bytes) -> None:
        """Remove a folder that was made for a path, and the empty ones above it in the skeleton.

        No copy of a root hangs on these folders, so they may stay: in a private folder, a program
        may have put something there.
        """
        if not made:
            return
        folder, name = os.path.split(made)
        with suppress(OSError):
            with closing(open_path(folder, os.O_DIRECTORY)) as above:
                os.rmdir(name, dir_fd=above)
            if not made.startswith(self._skeleton):
                return
            path = os.path.dirname(made[len(self._skeleton) :])
            while path != b"/" and path not in self._mounted:
                os.rmdir(self._skeleton + path)
                path = os.path.dirname(path)

    # The base

    def _add_entry(self, entry: ViewEntry, layers: bytes) -> None:
        match entry.kind:
            case ViewEntryKind.LINK:
                self._add_link(entry.path, entry.target)
            case ViewEntryKind.FOLDER:
                self._make_folder(entry.path)
            case ViewEntryKind.PRIVATE:
                self._add_private(entry.path)
            case ViewEntryKind.CACHE:
                self._add_overlay(entry.path, layers)
            case ViewEntryKind.KEPT:
                self._add_kept(entry.path, layers)
            case ViewEntryKind.HIDDEN:
                self._add_hidden(entry.path)
            case ViewEntryKind.PRIVATE_FILE:
                self._add_private_file(entry.path, entry.content)
            case (
                ViewEntryKind.READ
                | ViewEntryKind.WRITE
                | ViewEntryKind.STATE
                | ViewEntryKind.SOCKET
                | ViewEntryKind.DEVICE
            ):
                source = entry.target or entry.path
                self._add_bound(entry.path, _ATTRIBUTES[entry.kind], source)
        if entry.kind in _OWN_FOLDERS:
            self._own_folders.add(entry.path)

    def _add_link(self, path: bytes, target: bytes) -> None:
        if not os.path.lexists(self.root + path):  # a folder that is shown may have it
            os.symlink(target, self._new_place(path))

    def _add_hidden(self, path: bytes) -> None:
        if os.path.lexists(self.root + path):
            is_folder = os.path.isdir(path)
            empty = self._add_mask(b"", path) if is_folder else self._base + _EMPTY_FILE
            self._attach_copy(empty, self.root + path, Attribute.READ_ONLY, Depth.ONE)

    def _add_private(self, path: bytes) -> None:
        self._make_folder(path)
        mode = b"mode=1777" if path in _OPEN_TO_ALL else b"mode=0700"
        mount(b"rootsd-private", self.root + path, _TMPFS, _NO_PRIVILEGES, mode)
        self._mounted[path] = _Mounted.PRIVATE

    def _add_private_file(self, path: bytes, content: bytes) -> None:
        """Write a file into a private folder. Never write where a folder from outside is."""
        above = next(each for each in ancestors(path) if each in self._mounted or each == b"/")
        if self._mounted.get(above) is _Mounted.PRIVATE and not os.path.lexists(self.root + path):
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            with open(os.open(self._new_place(path), flags, 0o600), "wb") as file:
                file.write(content)

    def _add_bound(self, path: bytes, attributes: Attribute, source: bytes) -> None:
        if os.path.isdir(source):
            self._make_folder(path)
        else:
            self._make_file(path)
        fd = os.open(source, os.O_PATH | os.O_CLOEXEC)
        with closing(fd), closing(clone_tree(fd, Depth.ALL)) as tree:
            set_attributes(tree, attributes | Attribute.NO_SUID)
            if self._is_inner(path):
                with closing(open_path(self.root + path)) as target:
                    attach(tree, target)
            else:
                with self._base_point(path, tree) as point:
                    attach(tree, point.fd)
        if os.path.isdir(source):
            self._mounted[path] = _Mounted.BOUND

    def _is_inner(self, path: bytes) -> bool:
        """Return whether something from outside is mounted above `path`, or at it."""
        above = next((each for each in (path, *ancestors(path)) if each in self._mounted), b"")
        return self._mounted.get(above) is _Mounted.BOUND

    @contextmanager
    def _base_point(self, path: bytes, like: int) -> Iterator[_Point]:
        """Stage a point for a mount of the base. After the block, programs see it."""
        stage = self._base + (_STAGE if _is_folder(like) else _STAGE_FOR_FILES)
        with self._staged_point(path, like) as point:
            yield point
            tree = open_path(stage)
            place = open_path(self.root + path)
            attach(point.fd, place)
        self._base_mounts[path] = _BaseMount(tree, place, point)

    def _add_overlay(self, path: bytes, layers: bytes) -> None:
        self._make_folder(path)
        place = layers + b"/" + _flat_name(path)
        upper, work = place + b"/upper", place + b"/work"
        os.makedirs(upper, 0o700, exist_ok=True)
        os.makedirs(work, 0o700, exist_ok=True)
        options = (_escape(path), _escape(upper), _escape(work))
        data = b"lowerdir=%s,upperdir=%s,workdir=%s,userxattr" % options
        try:
            if self._is_inner(path):
                mount(_OVERLAY, self.root + path, _OVERLAY, _NO_PRIVILEGES, data)
            else:
                stage = self._base + _STAGE
                with closing(open_path(stage)) as like, self._base_point(path, like):
                    mount(_OVERLAY, stage, _OVERLAY, _NO_PRIVILEGES, data)
            self._mounted[path] = _Mounted.BOUND
        except OSError as error:
            # Less is visible than described, never more.
            self.notes.append(f"{os.fsdecode(path)} is empty inside: {error.strerror}")
            mount(b"rootsd-private", self.root + path, _TMPFS, _NO_PRIVILEGES, b"mode=0700")
            self._mounted[path] = _Mounted.PRIVATE

    def _add_kept(self, path: bytes, layers: bytes) -> None:
        if os.path.isdir(path):
            self._add_overlay(path, layers)
            return
        copy = layers + b"/" + _flat_name(path)
        if not os.path.exists(copy):
            shutil.copyfile(path, copy + b".new", follow_symlinks=False)
            os.chmod(copy + b".new", 0o600)
            os.rename(copy + b".new", copy)
        self._add_bound(path, Attribute.NO_DEVICES, copy)

    def _attach_copy(
        self, source: bytes, target: bytes, attributes: Attribute, depth: Depth
    ) -> None:
        """Mount a copy of the tree at `source` on `target`, with these attributes."""
        fd = os.open(source, os.O_PATH | os.O_CLOEXEC)
        with closing(fd), closing(open_path(target)) as point:
            attach_copy(fd, point, attributes, depth)

    def _new_place(self, path: bytes) -> bytes:
        """Return where to make `path`, after its parents: in a private folder or the skeleton."""
        above = next((each for each in ancestors(path) if each in self._mounted), None)
        place = self._skeleton + path
        if above is not None and self._mounted[above] is not _Mounted.LOCKED:
            first = _first_below(above, path)
            if above in _OPEN_TO_ALL and first != path:
                os.mkdir(self.root + first, 0o755)
                self._lock(first)
            else:
                place = self.root + path
                # Programs may write there, so a root below needs a locked folder deeper down.
                between = [each for each in ancestors(path) if contains(above, each)]
                for folder in reversed(between):
                    self._mounted.setdefault(folder, _Mounted.PRIVATE)
                    _make_folders(self.root + folder, 0o700)  # ssh and gpg insist on this mode
        _make_folders(os.path.dirname(place), 0o755)
        return place

    def _make_folder(self, path: bytes) -> None:
        if not os.path.lexists(self.root + path):
            os.mkdir(self._new_place(path), 0o755)

    def _make_file(self, path: bytes) -> None:
        if not os.path.lexists(self.root + path):
            os.close(os.open(self._new_place(path), os.O_CREAT | os.O_WRONLY, 0o644))


def _end(point: _Point, path: bytes) -> None:
    """Detach a root and its point, in every namespace. Raises RevokeFailed.

    A descriptor of a folder finds the topmost mount on it. If somebody outside removed the folder
    below the point, both are gone already.
    """
    with closing(point.fd):
        with suppress(OSError):
            detach(point.fd)
        try:
            _remove(point)
        except OSError as error:
            raise RevokeFailed(path, error.strerror or "its point stays") from error
        with suppress(OSError):
            detach(point.fd)


def _remove(point: _Point) -> None:
    """Detach what still hangs on a point in any namespace. Raises OSError."""
    if os.path.isdir(point.folder):
        os.rmdir(point.folder)
    else:
        os.unlink(point.folder)


def _make_point(path: bytes, like: int) -> None:
    """Make what can be mounted on: a folder or a file, as what is open as `like`."""
    if _is_folder(like):
        os.mkdir(path, 0o555)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _is_folder(fd: int) -> bool:
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def _masked_below(path: bytes, masks: Iterable[Mask]) -> list[bytes]:
    """Return the masks in a mount of the base, relative to it. A mask over all of it stays."""
    return [mask.path[len(path) + 1 :] for mask in masks if mask.path != path]


def _make_folders(path: bytes, mode: int) -> None:
    """Make a folder and those above it. A link in the way, which a program can make, is an error.

    Raises OSError (ELOOP for a link).
    """
    with suppress(FileNotFoundError):
        os.close(open_path(path, os.O_DIRECTORY))
        return
    above, name = os.path.split(path)
    _make_folders(above, mode)
    with closing(open_path(above, os.O_DIRECTORY)) as folder, suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)


def _is_held(path: ProtectedPath) -> bool:
    return path.protection is Protection.HELD


def _make_placeholder(place: bytes) -> None:
    """Make what tells git that a worktree exists. Raises OSError."""
    _make_folders(place, 0o755)
    with closing(open_path(place, os.O_DIRECTORY)) as folder, suppress(FileExistsError):
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        os.close(os.open(GIT, flags, 0o444, dir_fd=folder))


def _worktree_names(root: int, common: bytes) -> dict[bytes, dict[bytes, bytes]]:
    """Return the folders and names to watch for new worktrees of a git directory.

    Git writes `HEAD` and `commondir` after the `.git` file of the worktree.
    """
    group = common + b"/" + WORKTREES
    names = dict.fromkeys((b"gitdir", b"HEAD", b"commondir"), group)
    own = {group + b"/" + name: names for name in names_below(root, group)}
    return {group: {ANY_NAME: group}, **own}


def _first_below(folder: bytes, path: bytes) -> bytes:
    """Return the path of the entry of `folder` that is or contains `path`."""
    return folder + b"/" + path[len(folder) + 1 :].split(b"/", 1)[0]


def _flat_name(path: bytes) -> bytes:
    return path.lstrip(b"/").replace(b"%", b"%25").replace(b"/", b"%2F")


def _escape(path: bytes) -> bytes:
    r"""Return `path` as an option of overlayfs, where `,` and `:` separate."""
    return path.replace(b"\\", b"\\\\").replace(b",", b"\\,").replace(b":", b"\\:")
