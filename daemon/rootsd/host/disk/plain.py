"""Tells at once whether a path is its own real path, as most are.

That takes a few looks at folders of local disks, which end; a path that is not plain, or leads to
where a look may not end, is for a thread to follow.
"""

from __future__ import annotations

import os
import stat

from rootsd.host.disk.markers import child
from rootsd.host.disk.mounts import innermost
from rootsd.host.disk.mounttable import MountTable
from rootsd.host.disk.spelling import may_be_spelled_otherwise

_NO_NAMES = frozenset((b"", b".", b".."))


def is_plain(mounted: MountTable, path: bytes) -> bool:
    """Whether an absolute path has no link on its way, is spelled as its folders spell it, and
    lies on local disks alone; what is not there lies nowhere else. False where that is not sure.

    Raises ValueError where it can be no path.
    """
    names = path.split(b"/")[1:]
    if not path.isascii() or not _NO_NAMES.isdisjoint(names):
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
        if may_be_spelled_otherwise(folder, name, found, os.lstat):
            return False
        folder = here
    return True
