"""Reads who may write a folder by its access control list, beside its owner and its group.

Where there is a list, the group bits of the mode are its mask: they say what it grants at most,
and the folder's own group may have nobody else in it. Sources: acl(5), posix_acl_xattr.h.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import NamedTuple

_ATTRIBUTE = "system.posix_acl_access"
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_VERSION = 2
_USER, _GROUP = 0x02, 0x08
_WRITE = 0x02


class Writers(NamedTuple):
    """The ids of those whom a list names, and lets write as far as its mask does."""

    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()


NOBODY = Writers()

if sys.platform == "linux":

    def named_writers(folder: bytes) -> Writers:
        """Whom the list of `folder` names; nobody where it has none, as nearly all have not."""
        try:
            told = os.getxattr(folder, _ATTRIBUTE, follow_symlinks=False)
        except OSError:
            return NOBODY
        return _named_in(told)

else:

    def named_writers(_folder: bytes) -> Writers:
        """Nobody: another system's lists are not read."""
        return NOBODY


def _named_in(told: bytes) -> Writers:
    if len(told) % _ENTRY.size != _HEADER.size or _HEADER.unpack_from(told)[0] != _VERSION:
        return NOBODY
    entries = list(_ENTRY.iter_unpack(told[_HEADER.size :]))
    users, groups = (
        frozenset(who for tag, granted, who in entries if tag == kind and granted & _WRITE)
        for kind in (_USER, _GROUP)
    )
    return Writers(users, groups)
