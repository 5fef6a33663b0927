"""Keep the folders on the way to each mount, and know what is mounted at which path.

* `root`: the view, which is the root folder of the programs. It is a *shared* mount. The
  namespaces of the programs are *slaves* of it, so the kernel repeats each mount and unmount in
  all of them, at once and in one direction. Nobody enters a program's namespace to change it.
* `folder`: the skeleton, with the empty folders on the way to a mount. It is the view without the
  mounts. Programs see it read-only, because a program that could rename a folder on the way could
  move the mounts.

In a private folder, where programs can write, a locked part of the skeleton covers the way.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from enum import Enum

from rootsd.core.paths import ancestors, contains
from rootsd.wall.kernel import covers
from rootsd.wall.kernel.warden import VIEW
from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    MountFlag,
    attach_copy,
    change_propagation,
    closing,
    mount,
    open_path,
)

_SKELETON = b"/skeleton"
TMPFS = b"tmpfs"
NO_PRIVILEGES = MountFlag.NO_SUID | MountFlag.NO_DEVICES
INODES = b"nr_inodes=1m"
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
OPEN_TO_ALL = frozenset((b"/tmp", b"/var/tmp", b"/dev/shm"))


class Mounted(Enum):
    """What is mounted over the skeleton at a path."""

    BOUND = "a tree from outside"
    PRIVATE = "a private folder"
    LOCKED = "a part of the skeleton in a private folder"


class Skeleton:
    """The skeleton and the view over it, in the folder `base`."""

    def __init__(self, base: bytes) -> None:
        self.root = base + VIEW
        """The folder that becomes the root of programs."""
        self.folder = base + _SKELETON
        self.mounted: dict[bytes, Mounted] = {}
        """What is mounted over the skeleton, by path."""

    def build(self) -> None:
        """Make the skeleton, and the view over it. Raises OSError."""
        for place in (self.root, self.folder):
            os.mkdir(place, 0o755)
        mount(b"rootsd", self.folder, TMPFS, NO_PRIVILEGES, b"mode=0755," + INODES)
        attach_copy_of(self.folder, self.root)
        change_propagation(self.root, MountFlag.SHARED)

    def above(self, path: bytes) -> bytes | None:
        """Return the nearest path above `path` at which something is mounted."""
        return next((each for each in ancestors(path) if each in self.mounted), None)

    def is_outside(self, path: bytes) -> bool:
        """Return whether what programs see at `path` is in a tree from outside."""
        at = path if path in self.mounted else self.above(path)
        return at is not None and self.mounted[at] is Mounted.BOUND

    def is_visible(self, path: bytes) -> bool:
        """Return whether programs see a file at `path`."""
        try:
            os.close(open_path(self.root + path, os.O_NOFOLLOW))
        except OSError:
            return False
        return True

    def make_folders_to(self, path: bytes) -> bytes:
        """Make the folder to mount a root on, and return where it was made."""
        above = self.above(path)
        match self.mounted.get(above or b""):
            case Mounted.BOUND:
                assert above is not None
                with closing(open_path(self.root + above)) as outer:
                    covers.hold_above(outer, path[len(above) + 1 :])
                return b""  # the folder outside is the mount point
            case Mounted.PRIVATE:
                assert above is not None
                first = first_below(above, path)
                self.clear_way(first)
                if first == path:
                    return self.root + path
                self.lock(first)
            case Mounted.LOCKED | None:
                pass
        os.makedirs(self.folder + path, exist_ok=True)
        return self.folder + path

    def clear_way(self, path: bytes, kind: int = stat.S_IFDIR) -> None:
        """Make a folder, or an empty file, where a program may have put anything.

        A link that a program put there would lead to the files outside, since this process sees
        them. So no link is followed. `kind` is the type bits of what is needed.
        """
        folder, name = os.path.split(path)
        with closing(open_path(self.root + folder, os.O_DIRECTORY)) as above:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=above, follow_symlinks=False)
                is_usable = stat.S_ISDIR(found.st_mode) == stat.S_ISDIR(kind)
                if not is_usable or stat.S_ISLNK(found.st_mode):
                    hidden = name + b".hidden"
                    if os.path.lexists(b"/proc/self/fd/%d/%s" % (above, hidden)):
                        hidden += b"-%d" % time.time_ns()
                    os.rename(name, hidden, src_dir_fd=above, dst_dir_fd=above)
            with suppress(FileExistsError):
                if stat.S_ISDIR(kind):
                    os.mkdir(name, 0o755, dir_fd=above)
                else:
                    os.close(os.open(name, _NEW_FILE, 0o644, dir_fd=above))

    def clear_way_below(self, above: bytes, path: bytes, kind: int) -> None:
        """Make the folders from `above` to `path`, and what is there; see `clear_way`."""
        between = [each for each in ancestors(path) if each != above and contains(above, each)]
        for folder in reversed(between):
            self.clear_way(folder)
        self.clear_way(path, kind)

    def lock(self, path: bytes) -> None:
        """Cover a folder of a private folder by one in which nothing can be made or moved."""
        os.makedirs(self.folder + path, exist_ok=True)
        attach_copy_of(self.folder + path, self.root + path)
        self.mounted[path] = Mounted.LOCKED

    def remove_folders(self, made: bytes) -> None:
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
            if not made.startswith(self.folder):
                return
            self.remove_empty(os.path.dirname(made[len(self.folder) :]))

    def remove_empty(self, path: bytes) -> None:
        """Remove an empty folder of the skeleton, and the empty ones above it. Raises OSError."""
        while path != b"/" and path not in self.mounted:
            os.rmdir(self.folder + path)
            path = os.path.dirname(path)

    def new_place(self, path: bytes) -> bytes:
        """Return where to make `path`, after its parents: in a private folder or the skeleton."""
        above = self.above(path)
        place = self.folder + path
        if above is not None and self.mounted[above] is not Mounted.LOCKED:
            first = first_below(above, path)
            if above in OPEN_TO_ALL and first != path:
                os.mkdir(self.root + first, 0o755)
                self.lock(first)
            else:
                place = self.root + path
                # Programs may write there, so a root below needs a locked folder deeper down.
                between = [each for each in ancestors(path) if contains(above, each)]
                for folder in reversed(between):
                    self.mounted.setdefault(folder, Mounted.PRIVATE)
                    make_folders(self.root + folder, 0o700)  # ssh and gpg insist on this mode
        make_folders(os.path.dirname(place), 0o755)
        return place

    def make_place_for_given(self, path: bytes) -> None:
        """Make an empty file while programs run, where they see nothing. Raises OSError.

        Programs can put links into a private folder at any moment. So nothing there is made by a
        path: only directly in a folder that is open, or in a locked part of the skeleton.
        """
        above = self.above(path)
        if self.is_visible(path):
            raise FileExistsError(errno.EEXIST, "programs see something at this path already")
        if above is not None and self.mounted[above] is Mounted.BOUND:
            shown = os.fsdecode(above)
            raise OSError(errno.EROFS, f"programs see {shown} as it is outside; copy it to a root")
        place = self.folder + path
        if above is not None and self.mounted[above] is Mounted.PRIVATE:
            first = first_below(above, path)
            if first == path:
                place = self.root + path
            elif self.is_visible(first):
                shown = os.fsdecode(first)
                raise FileExistsError(errno.EEXIST, f"programs have made {shown} themselves")
            else:
                self.clear_way(first)
                self.lock(first)
        if place.startswith(self.folder + b"/"):
            os.makedirs(os.path.dirname(place), exist_ok=True)
        folder, name = os.path.split(place)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with closing(open_path(folder, os.O_DIRECTORY)) as open_folder:
            os.close(os.open(name, flags, 0o444, dir_fd=open_folder))

    def make_folder(self, path: bytes) -> None:
        """Make a folder, unless programs see something there. Raises OSError."""
        if not os.path.lexists(self.root + path):
            os.mkdir(self.new_place(path), 0o755)

    def make_locked_folder(self, path: bytes) -> None:
        """Make a folder in which programs can make nothing, unless they see something there.

        A root may be mounted there later. Raises OSError.
        """
        if self.is_outside(path) or self.is_visible(path):
            return
        above = self.above(path)
        if above is not None and self.mounted[above] is Mounted.PRIVATE:
            first = first_below(above, path)
            self.clear_way(first)
            self.lock(first)
        os.makedirs(self.folder + path, exist_ok=True)

    def make_file(self, path: bytes) -> None:
        """Make a file, unless programs see something there. Raises OSError."""
        if not os.path.lexists(self.root + path):
            os.close(os.open(self.new_place(path), os.O_CREAT | os.O_WRONLY, 0o644))


def attach_copy_of(source: bytes, target: bytes) -> None:
    """Mount a read-only copy of the mount at `source` on `target`. Raises OSError."""
    fd = os.open(source, os.O_PATH | os.O_CLOEXEC)
    with closing(fd), closing(open_path(target)) as point:
        attach_copy(fd, point, Attribute.READ_ONLY, Depth.ONE)


def make_folders(path: bytes, mode: int) -> None:
    """Make a folder and those above it. A link in the way, which a program can make, is an error.

    Raises OSError (ELOOP for a link).
    """
    with suppress(FileNotFoundError):
        os.close(open_path(path, os.O_DIRECTORY))
        return
    above, name = os.path.split(path)
    make_folders(above, mode)
    with closing(open_path(above, os.O_DIRECTORY)) as folder, suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)


def first_below(folder: bytes, path: bytes) -> bytes:
    """Return the path of the entry of `folder` that is or contains `path`."""
    return folder + b"/" + path[len(folder) + 1 :].split(b"/", 1)[0]
