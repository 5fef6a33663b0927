"""Attach what programs see so that it can be taken away for good.

A root, or a mount of the base, is attached whole: there is no moment in which it is visible
without its protection. It is mounted on its *point* in the stage, and the point is moved to the
path with everything on it. A point is an empty folder. A read-only mount of it lies between the
root and its path. Programs see the folder nowhere else, and cannot change it.

To end a point, what hangs on it is unmounted lazily, the folder is removed, and the point is
unmounted. The kernel detaches what is mounted on a removed folder in *every* namespace, also in
one that a program has cut off from the tree. No program can make the removal fail, since none can
write to a point or mount in this namespace. So a failure is a defect, and `RevokeFailed` ends the
wall. The point goes last: where the kernel unmounts a point with a root left on it, it moves that
root to the folder below.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rootsd.wall.system_calls import (
    Attribute,
    Depth,
    attach,
    clone_tree,
    closing,
    detach,
    open_path,
    set_attributes,
)

_POINTS, _ORIGINALS = b"/points", b"/originals"
_STAGE, _STAGE_FOR_FILES = b"/stage", b"/stage-for-files"


class RevokeFailed(Exception):
    """An error: a root was hidden, but a program may still have a copy of it.

    The wall must end. This is no OSError, because those of a root let the others go on.
    """

    def __init__(self, path: bytes, why: str) -> None:
        super().__init__(f"{os.fsdecode(path)} could not be taken away: {why}")
        self.path = path


class Point(NamedTuple):
    """The point of a root: its folder, and an open descriptor of its mount.

    That of a single file in the base is a file.
    """

    folder: bytes
    fd: int


class MountStage:
    """The private place, in the folder `base`, where a root gets all that programs see of it."""

    def __init__(self, base: bytes) -> None:
        self._base = base
        self.folder = base + _STAGE
        """Where a folder waits before programs see it."""
        self._made = 0  # for the names of points and copies

    def build(self) -> None:
        """Make the folders. Raises OSError."""
        for name in (_POINTS, _ORIGINALS, _STAGE):
            os.mkdir(self._base + name, 0o755)
        os.close(os.open(self._base + _STAGE_FOR_FILES, os.O_CREAT | os.O_WRONLY, 0o444))

    def place_for(self, like: int) -> bytes:
        """Return where a point for what is open as `like` waits."""
        return self.folder if is_folder(like) else self._base + _STAGE_FOR_FILES

    @contextmanager
    def new_point(self, path: bytes, like: int) -> Iterator[Point]:
        """Attach a new point to the stage: a folder or a file, as `like`.

        The block mounts a tree on it and moves it. Nothing can be mounted into a detached tree. To
        copy the tree later and unmount it here would be slower, because an unmount waits until no
        processor uses the mount.
        """
        self._made += 1
        folder = self._base + _POINTS + b"/%d" % self._made
        _make_point(folder, like)
        with closing(open_path(folder)) as source:
            point = Point(folder, clone_tree(source, Depth.ONE))
        try:
            set_attributes(point.fd, Attribute.READ_ONLY)
            with closing(open_path(self.place_for(like))) as stage:
                attach(point.fd, stage)
            yield point
        except BaseException:
            end(point, path)
            raise

    def copy_of(self, tree: int) -> bytes:
        """Mount a copy of a tree where programs do not see it, and return where."""
        self._made += 1
        place = self._base + _ORIGINALS + b"/%d" % self._made
        _make_point(place, tree)
        with closing(open_path(place)) as target, closing(clone_tree(tree, Depth.ALL)) as copy:
            set_attributes(copy, Attribute(0))
            attach(copy, target)
        return place


def end(point: Point, path: bytes) -> None:
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


def is_folder(fd: int) -> bool:
    """Return whether a folder is open as `fd`."""
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def _remove(point: Point) -> None:
    """Detach what still hangs on a point in any namespace. Raises OSError."""
    if os.path.isdir(point.folder):
        os.rmdir(point.folder)
    else:
        os.unlink(point.folder)


def _make_point(path: bytes, like: int) -> None:
    """Make what can be mounted on: a folder or a file, as what is open as `like`."""
    if is_folder(like):
        os.mkdir(path, 0o555)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444))
