"""Check that a folder on the disk is still the same folder.

A path that was right a moment ago may now lead elsewhere: somebody can move the folder away and
put a symbolic link in its place. So this module opens a folder without following any link in its
path, and takes all facts from that descriptor. Sources: openat2(2), open(2), statx(2).
"""

from __future__ import annotations

import os

from rootsd.core.quick_tuple import NamedTuple
from rootsd.disk.inode import FUSE, file_handle, file_system_type, statx_facts
from rootsd.disk.reader import open_folder


class FolderFingerprint(NamedTuple):
    """The identity of a folder, different for another folder at the same path.

    * `number`: the inode, or the number of the mount where inodes are only counters (FUSE).
    * `proof`: the file handle or else the birth time, if there is one. Overlayfs keeps only the
      handle when it copies a folder up.
    """

    device: int
    number: int | None
    proof: bytes | int | None


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
        facts = statx_facts(folder, found)
        if file_system_type(folder) == FUSE:
            return FolderFingerprint(found.st_dev, facts.mount_number, None)
        proof = file_handle(folder) or facts.born_ns
        return FolderFingerprint(found.st_dev, found.st_ino, proof)
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
