"""Find the canonical spelling of a path, and check that a path is canonical.

Some volumes accept `SRC` for `src`, or a letter plus an accent for a single character, and
realpath(3) keeps the spelling that it was given. rootsd stores decisions by path, so each folder
must have exactly one path. Two spellings are equal if they lead to the same inode. rootsd has no
rules of its own for upper and lower case.

`is_canonical_local` decides most paths at once: it checks paths on local disks, which respond.
Other paths need a thread, because a lookup there may hang.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from rootsd.disk.markers import child
from rootsd.disk.mounts import MountTable, innermost

Lstat = Callable[[bytes], os.stat_result]


def canonical_spelling(path: bytes) -> bytes:
    """Return an absolute path, which has no links, in its canonical spelling. Raises nothing."""
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
        pass  # the entry is absent, or we have no permission
    return name


def may_have_other_spelling(
    folder: bytes, name: bytes, found: os.stat_result, lstat: Lstat
) -> bool:
    """Return whether `folder` may accept other spellings of `name`. `found` is its stat result.

    For a name in ASCII, it is enough to try one other spelling.
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
    """Return whether an absolute path is certainly canonical and on local disks only.

    A canonical path contains no links and has the canonical spelling. A missing folder counts as
    canonical. The result is False if this is uncertain. Raises ValueError for a NUL byte.
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
