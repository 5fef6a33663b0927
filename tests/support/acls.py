"""Access control lists for the folders of tests. Sources: acl(5), posix_acl_xattr.h."""

from __future__ import annotations

import os
import struct
from pathlib import Path

READ, WRITE = 5, 7
USER, GROUP = 0x02, 0x08
_OWNER, _OWN_GROUP, _MASK, _OTHERS = 0x01, 0x04, 0x10, 0x20
_NO_ID = 0xFFFF_FFFF


def give(folder: Path, *named: tuple[int, int, int]) -> None:
    """Set the access list of a folder with mode 0775. Each extra entry is a tag, permissions, and
    an id.
    """
    own = ((_OWNER, 7, _NO_ID), (_OWN_GROUP, 7, _NO_ID), (_MASK, 7, _NO_ID), (_OTHERS, 5, _NO_ID))
    entries = b"".join(struct.pack("<HHI", *entry) for entry in sorted((*own, *named)))
    os.setxattr(folder, "system.posix_acl_access", struct.pack("<I", 2) + entries)
