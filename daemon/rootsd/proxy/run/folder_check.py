"""Check that a folder on the disk is still the same folder.

A path that was right a moment ago may lead elsewhere now: a folder can be moved away and a link
put in its place. So a folder is opened without following a link anywhere in its path, and what is
told of it is told of that descriptor. Sources: openat2(2), open(2), statx(2).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from rootsd.disk.reader import birth_time_ns_fd, open_folder


class FolderFingerprint(NamedTuple):
    """What tells a folder from another one that takes its place. `born_ns` is the birth time in
    nanoseconds, None where the file system keeps none."""

    device: int
    inode: int
    born_ns: int | None


def fingerprint(path: bytes) -> FolderFingerprint | None:
    """Return the mark of the folder at the canonical `path`. None where there is none, where it
    cannot be opened, or where a link lies anywhere in the path."""
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
    """Return the real path of a folder, links followed; None where there is no folder."""
    try:
        real = os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None
    return real if os.path.isdir(real) else None
