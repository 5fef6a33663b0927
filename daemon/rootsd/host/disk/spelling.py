"""Finds the name that a folder itself has for what somebody called by another spelling.

Some volumes take `SRC` for `src`, or a letter and its accent for one letter; realpath(3) keeps
what was asked for. Decisions are kept by path, so each folder must have one. What is the same is
told by identity: no rule of ours says which spellings are alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from rootsd.host.disk.markers import child

Lstat = Callable[[bytes], os.stat_result]


def spelled(path: bytes) -> bytes:
    """An absolute path without links, as the folders on it spell it; raises nothing."""
    done = b"/"
    for name in path.split(b"/"):
        if name:
            done = child(done, listed_name(done, name))
    return done


def listed_name(folder: bytes, name: bytes, lstat: Lstat = os.lstat) -> bytes:
    """The name of the entry that `folder` shows as `name`; `name` itself where there is none."""
    try:
        found = lstat(child(folder, name))
        if not may_be_spelled_otherwise(folder, name, found, lstat):
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


def may_be_spelled_otherwise(
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
