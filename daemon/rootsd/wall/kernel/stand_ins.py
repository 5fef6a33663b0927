"""Show empty folders and files in place of what programs do not see.

A *mask* is an empty folder over a denied one. Git removes what it knows about a worktree whose
folder does not exist. So each worktree of a shown repository that exists and is not visible has a
*placeholder*: an empty folder at its path, with an empty file `.git`. Programs cannot change or
remove it. Placeholders lie in the skeleton, or in a mask. In a private folder, a locked part of
the skeleton covers the way there. A root that is shown lies over its placeholder, so there is no
moment without either.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from rootsd.core.mount_plan import Mask
from rootsd.core.paths import ancestors, contains
from rootsd.disk.git_pointer import GIT
from rootsd.wall.kernel import covers
from rootsd.wall.kernel.points import is_folder
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.kernel.skeleton import Mounted, Skeleton, first_below, make_folders
from rootsd.wall.kernel.worktrees import RootWorktrees
from rootsd.wall.system_calls import closing, open_path

_EMPTY = b"/empty"


class StandIns:
    """The masks, and the placeholders of `worktrees`, of a tree in the folder `base`."""

    def __init__(self, base: bytes, skeleton: Skeleton, worktrees: RootWorktrees) -> None:
        self._folder = base + _EMPTY
        self.empty_file = self._folder + b"/file"
        """An empty file to mount over another one."""
        self.own_folders: set[bytes] = set()
        """The mounts of the base that differ from what is at their paths outside."""
        self._skeleton = skeleton
        self._worktrees = worktrees
        self._made = 0  # the number of masks and files so far, for their names
        # The folders over what is denied or hidden, by its path and the root that hides it.
        self._masks: dict[bytes, dict[bytes, bytes]] = {}
        self._placeholders: dict[bytes, bytes] = {}  # where they lie, by the worktree's path

    def build(self) -> None:
        """Make the folder and the empty file. Raises OSError."""
        os.mkdir(self._folder, 0o755)
        os.close(os.open(self.empty_file, os.O_CREAT | os.O_WRONLY, 0o444))

    def new_file(self, content: bytes) -> bytes:
        """Make a file to show in place of another one, and return where it is. Raises OSError."""
        self._made += 1
        place = self._folder + b"/%d" % self._made
        with open(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444), "wb") as file:
            file.write(content)
        return place

    # Masks

    def mask(self, tree: int, path: bytes, mask: Mask, owner: bytes) -> None:
        """Cover a denied folder in the tree of `path`, for the root `owner` or the base."""
        made: dict[bool, bytes] = {}

        def empty_like(point: int) -> bytes:
            kind = is_folder(point)
            if kind not in made:  # it may be asked again, if the folder is just replaced
                made[kind] = self.empty_like(point, mask, owner)
            return made[kind]

        covers.cover(tree, mask.path[len(path) + 1 :], empty_like, flags=0)

    def empty_like(self, fd: int, mask: Mask, owner: bytes = b"") -> bytes:
        """Return an empty folder or file to show in place of what is open as `fd`."""
        if not is_folder(fd):
            return self.empty_file
        return self.add_mask(owner, mask.path, mask.inner)

    def add_mask(self, root: bytes, path: bytes, inner: Iterable[bytes] = ()) -> bytes:
        """Make the empty folder over what `root` hides at `path`, and return where it is.

        It has the mount points `inner` and the placeholders that must be in it.
        """
        self._made += 1
        cover = self._folder + b"/%d" % self._made
        os.mkdir(cover, 0o755)
        for each in inner:
            os.makedirs(cover + each[len(path) :], exist_ok=True)
        self._masks.setdefault(path, {})[root] = cover
        for each in self._worktrees.paths:
            if contains(path, each):
                with suppress(OSError):
                    _make_placeholder(cover + each[len(path) :])
                    self._placeholders[each] = cover + each[len(path) :]
        return cover

    def mask_at(self, path: bytes) -> bytes | None:
        """Return the folder over what is hidden at `path`: the innermost root covers others."""
        by_root = self._masks.get(path)
        return by_root[max(by_root, key=len)] if by_root else None

    def drop_masks(self, root: bytes) -> None:
        """Forget the folders over what `root` and the roots in it hide: they are not mounted."""
        for by_root in self._masks.values():
            for inner in [each for each in by_root if contains(root, each)]:
                self.remove_cover(by_root.pop(inner))

    def take_base_masks(self, masks: Iterable[Mask]) -> list[bytes]:
        """Return the folders over what the base hides at `masks`, and forget them."""
        by_root = (self._masks.get(mask.path, {}) for mask in masks)
        return [each.pop(b"") for each in by_root if b"" in each]

    def remove_cover(self, cover: bytes) -> None:
        """Remove the folder that was over something hidden."""
        for path, place in list(self._placeholders.items()):
            if contains(cover, place):
                del self._placeholders[path]
        with suppress(OSError), closing(open_path(self._folder, os.O_DIRECTORY)) as above:
            remove_tree(os.fsdecode(os.path.basename(cover)), above)

    # Placeholders

    def place_worktrees(self) -> None:
        """Make the placeholders those of all worktrees that are not visible."""
        wanted = self._worktrees.paths
        for path in self._placeholders.keys() - wanted:
            self._remove_placeholder(path)
        for path in sorted(wanted - self._placeholders.keys()):
            with suppress(OSError):  # a program has put a link there
                self._add_placeholder(path)

    def _add_placeholder(self, path: bytes) -> None:
        """Make the placeholder of a worktree, unless it is visible. Raises OSError."""
        above = next(
            (
                each
                for each in (path, *ancestors(path))
                if self._masks.get(each) or each in self._skeleton.mounted
            ),
            b"/",
        )
        place = self._skeleton.folder + path
        if (mask := self.mask_at(above)) is not None:
            place = mask + path[len(above) :]
        elif self._skeleton.mounted.get(above) in (Mounted.BOUND, Mounted.PRIVATE):
            is_own = above in self.own_folders or self._skeleton.mounted[above] is Mounted.PRIVATE
            if not is_own or self._skeleton.is_visible(path + b"/" + GIT):
                return
            place = self._place_in_own_folder(above, path)
        _make_placeholder(place)
        self._placeholders[path] = place

    def _place_in_own_folder(self, above: bytes, path: bytes) -> bytes:
        """Return where to make a placeholder in a folder in which programs can write."""
        if path == above:
            return self._skeleton.root + path
        first = first_below(above, path)
        with suppress(OSError):
            if os.listdir(self._skeleton.root + first):  # what a program made there must stay
                return self._skeleton.root + path
        self._skeleton.clear_way(first)
        self._skeleton.lock(first)
        return self._skeleton.folder + path

    def _remove_placeholder(self, path: bytes) -> None:
        """Remove a placeholder, and the empty folders above it."""
        place = self._placeholders.pop(path)
        with suppress(OSError):
            with closing(open_path(place, os.O_DIRECTORY)) as folder:
                os.unlink(GIT, dir_fd=folder)
            if not place.startswith(self._skeleton.folder):
                return
            self._skeleton.remove_empty(path)


def _make_placeholder(place: bytes) -> None:
    """Make what tells git that a worktree exists. Raises OSError."""
    make_folders(place, 0o755)
    with closing(open_path(place, os.O_DIRECTORY)) as folder, suppress(FileExistsError):
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        os.close(os.open(GIT, flags, 0o444, dir_fd=folder))
