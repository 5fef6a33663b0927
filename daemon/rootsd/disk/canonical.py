"""Find the canonical spelling of a path, and check that a path is canonical.

Finds the name that a folder itself has for what somebody called by another spelling.

Some volumes take `SRC` for `src`, or a letter and its accent for one letter; realpath(3) keeps
what was asked for. Decisions are kept by path, so each folder must have one. What is the same is
told by identity: no rule of ours says which spellings are alike.

Tells at once whether a path is its own real path, as most are.

That takes a few looks at folders of local disks, which end; a path that is not plain, or leads to
where a look may not end, is for a thread to follow.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from rootsd.disk.markers import child
from rootsd.disk.mounts import MountTable, innermost

Lstat = Callable[[bytes], os.stat_result]


def canonical_spelling(path: bytes) -> bytes:
    """An absolute path without links, as the folders on it spell it; raises nothing."""
    done = b"/"
    for name in path.split(b"/"):
        if name:
            done = child(done, canonical_name(done, name))
    return done


def canonical_name(folder: bytes, name: bytes, lstat: Lstat = os.lstat) -> bytes:
    """The name of the entry that `folder` shows as `name`; `name` itself where there is none."""
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
        pass  # it is not there, or not ours to see
    return name


def may_have_other_spelling(
    folder: bytes, name: bytes, found: os.stat_result, lstat: Lstat
) -> bool:
    """Whether the folder takes other spellings of the name that shows what was `found`: for plain
    letters one other tells."""
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
    """Whether an absolute path has no link on its way, is spelled as its folders spell it, and
    lies on local disks alone; what is not there lies nowhere else. False where that is not sure.

    Raises ValueError where it can be no path.
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
