"""Look at entries below an open root.

A root is hostile, so reads are bounded, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from itertools import islice

from rootsd.disk.reader import CONFIG_CAP
from rootsd.wall.system_calls import closing, open_below

_MAX_NAMES, _SLASH = 512, ord("/")


class NodeKind(Enum):
    """What lies at a path, without following a link."""

    FOLDER = "folder"
    FILE = "file"
    LINK = "symbolic link"
    OTHER = "other"


def kind_below(root: int, path: bytes) -> NodeKind | None:
    """Return the kind of `path`; None if it does not exist or a link above leads there."""
    try:
        if b"/" in path or path == b"..":
            with closing(open_below(root, path, os.O_NOFOLLOW)) as fd:
                mode = os.fstat(fd).st_mode
        else:  # a name in the folder itself: most do not exist, and this call is cheap
            mode = os.stat(path, dir_fd=root, follow_symlinks=False).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return NodeKind.FOLDER
    if stat.S_ISLNK(mode):
        return NodeKind.LINK
    return NodeKind.FILE if stat.S_ISREG(mode) else NodeKind.OTHER


def is_closed(root: int, path: bytes) -> bool:
    """Return whether a folder above `path` does not let this user look at what is in it."""
    try:
        with closing(open_below(root, path, os.O_NOFOLLOW)):
            return False
    except PermissionError:
        return True
    except OSError:
        return False


def folders_above(path: bytes) -> list[bytes]:
    """Return the folders on the way to a relative path, outermost first."""
    return [path[:at] for at, letter in enumerate(path) if letter == _SLASH]


def reach(root: int, path: bytes) -> tuple[bytes, NodeKind | None]:
    """Return the first part of `path` that is a link or missing, or all of it, and its kind."""
    for above in folders_above(path):
        kind = kind_below(root, above)
        if kind is None or kind is NodeKind.LINK:
            return above, kind
    return path, kind_below(root, path)


def link_target(root: int, link: bytes) -> bytes | None:
    """Return the path below the root to which a link leads, or None if it leads outside."""
    with suppress(OSError), closing(open_below(root, link, os.O_NOFOLLOW)) as fd:
        target = os.readlink(b"", dir_fd=fd)
        if target.startswith(b"/"):
            top = os.readlink(b"/proc/self/fd/%d" % root)
            if not target.startswith(top + b"/"):
                return None
            target = target[len(top) + 1 :]
        else:
            target = os.path.join(os.path.dirname(link), target)
        target = os.path.normpath(target)
        leads_out = target.startswith((b"/", b"../")) or target == b".."
        return None if leads_out else target
    return None


def is_git_directory(root: int) -> bool:
    """Return whether the folder open as `root` is a git directory, as of a bare repository.

    Git needs no more than some of these names, of any kind. With `commondir`, the rest is there.
    """
    others = (b"objects", b"commondir")
    return kind_below(root, b"HEAD") is not None and any(kind_below(root, o) for o in others)


def names_below(root: int, folder: bytes, limit: int = _MAX_NAMES) -> list[bytes]:
    """Return the names in a folder below `root`, at most `limit`; none if there is no folder."""
    return listed_below(root, folder, limit) or []


@contextmanager
def entries_below(root: int, folder: bytes) -> Iterator[Iterator[os.DirEntry[bytes]]]:
    """Iterate over the entries of a folder below `root` in the block. Raises OSError.

    An empty path is the folder open as `root`.
    """
    with (
        closing(open_below(root, folder or b".", os.O_DIRECTORY)) as fd,
        os.scandir(b"/proc/self/fd/%d" % fd) as entries,
    ):
        yield entries


def listed_below(root: int, folder: bytes, limit: int) -> list[bytes] | None:
    """Return the names in a folder below `root`, at most `limit`; None if it cannot be listed."""
    with suppress(OSError), entries_below(root, folder) as entries:
        # A program may have made a million, and a revoke waits while this reads them.
        return sorted(entry.name for entry in islice(entries, limit))
    return None


def git_directories_below(root: int, group: bytes) -> Iterator[bytes]:
    """Yield the git directories in `modules` or `worktrees`; names of submodules have slashes."""
    waiting = [group]  # no recursion: a program can make folders deeper than Python allows
    while waiting:
        above = waiting.pop()
        for name in names_below(root, above):
            folder = above + b"/" + name
            if kind_below(root, folder) is not NodeKind.FOLDER:
                continue
            if kind_below(root, folder + b"/HEAD") is not None:
                yield folder
            else:
                waiting.append(folder)


def read_below(root: int, path: bytes) -> bytes:
    """Return the beginning of a regular file below `root`; empty for anything else."""
    with suppress(OSError), closing(open_below(root, path)) as found:
        return read_regular(found, CONFIG_CAP)
    return b""


def read_regular(found: int, limit: int) -> bytes:
    """Return the beginning of a file that is open with O_PATH. Raises OSError if it is no file."""
    if not stat.S_ISREG(os.fstat(found).st_mode):  # to open a FIFO takes for ever
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    # A program inside may hold a lease, for which an open waits 45 seconds otherwise.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(b"/proc/self/fd/%d" % found, flags), "rb") as file:
        return file.read(limit)
