"""The identity of a folder, as a daemon sends it to a warden.

It is not in `walls`, because the process that forks the walls loads that module, and the modules
that read an identity would take a third of its start.
"""

from __future__ import annotations

import os
from pathlib import Path

from rootsd.core.mount_plan import FolderIdentity
from rootsd.disk.identity import identify


def identity_of(folder: Path) -> FolderIdentity:
    """Return the identity of a folder."""
    seen = identify(os.fsencode(folder))
    device = None if seen.mount is None else seen.mount.device
    return FolderIdentity(seen.inode, seen.owner, seen.handle, seen.born_ns, device)
