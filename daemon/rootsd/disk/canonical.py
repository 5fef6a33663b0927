"""Find the canonical spelling of a path, and check that a path is canonical.

Some volumes accept `SRC` for `src`, or a letter plus an accent for one letter, and realpath(3)
keeps the spelling of the request. rootsd stores decisions by path, so each folder must have one
path. Two spellings are the same if they lead to the same inode; rootsd has no case rules of its
own.

`is_canonical_local` answers at once for most paths: it looks only at local disks, which respond.
Other paths need a thread, because the lookup may hang.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from rootsd.disk.markers import child
from rootsd.disk.mounts import MountTable, innermost

Lstat = Callable[[bytes], os.stat_result]


def canonical_spelling(path: bytes) -> bytes:
    """Return an absolute path without links in the spelling of its folders. Raises nothing."""
    done = b"/"
    for name in path.split(b"/"):
        if name:
            done = child(done, canonical_name(done, name))
    return done


def canonical_name(folder: bytes, name: bytes, lstat: Lstat = os.lstat) -> bytes:
    """Return the entry of `folder` that `name` opens, or `name` itself if there is none."""
    try:
        found = lstat(child(folder, name))
        if not may_have_other_spelling(folder, name, found, lstat):
            return name
        names = os.listdir(folder)
        if name in names:
            return name
        for other in names:
            if os.path.samestat(lstat(child(folder, other)), found):
                return other
    except OSError:
        pass  # it is absent, or we may not see it
    return name


def may_have_other_spelling(
    folder: bytes, name: bytes, found: os.stat_result, lstat: Lstat
) -> bool:
    """Return whether the folder accepts other spellings of `name`, whose stat result is `found`.

    For a name in ASCII, one other spelling shows it.
    """
    if not name.isascii():
        return True
    other = name.swapcase()
    if other == name:
        return False
    try:
        return os.path.samestat(lstat(child(folder, other)), found)
    except OSError:
        return False


_SPECIAL_NAMES = frozenset((b"", b".", b".."))


def is_canonical_local(mounted: MountTable, path: bytes) -> bool:
    """Return whether an absolute path is canonical and lies on local disks alone.

    Such a path has no link on its way and the spelling of its folders. A missing folder is
    canonical. False also means that the answer is uncertain.

    Raises ValueError for a path with a NUL byte.
    """
    names = path.split(b"/")[1:]
    if not path.isascii() or not _SPECIAL_NAMES.isdisjoint(names):
        return False
    if innermost((*mounted.remote(), *mounted.automounts()), path) is not None:
        return False
    folder = b"/"
    for name in names:
        here = child(folder, name)
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        if stat.S_ISLNK(found.st_mode):
            return False
        if may_have_other_spelling(folder, name, found, os.lstat):
            return False
        folder = here
    return True
