"""Check that a folder on the disk is still the same folder.

A path that was right a moment ago may now lead elsewhere: somebody can move the folder away and
put a symbolic link in its place. So this module opens a folder without following any link in its
path, and takes all facts from that descriptor. Sources: openat2(2), open(2), statx(2).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from rootsd.disk.inode import birth_time_ns_fd
from rootsd.disk.reader import open_folder


class FolderFingerprint(NamedTuple):
    """The identity of a folder, different for another folder at the same path.

    `born_ns` is the birth time in nanoseconds, or None if the file system stores none.
    """

    device: int
    inode: int
    born_ns: int | None


def fingerprint(path: bytes) -> FolderFingerprint | None:
    """Return the fingerprint of the folder at the canonical `path`.

    Return None if there is no folder, if it cannot be opened, or if the path contains a link.
    """
    try:
        folder = open_folder(path)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(folder)
        return FolderFingerprint(found.st_dev, found.st_ino, birth_time_ns_fd(folder, found))
    except OSError:
        return None
    finally:
        os.close(folder)


def canonical(path: bytes) -> bytes | None:
    """Return the real path of a folder with all links resolved; None if there is no folder."""
    try:
        real = os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None
    return real if os.path.isdir(real) else None
