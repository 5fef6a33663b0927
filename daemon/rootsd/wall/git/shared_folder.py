"""Find the git directory outside of a root that the root shares with its repository.

`shared_git_folder` follows the `.git` of a worktree or submodule. Any program that can write
the root can write that file. So the git directory must point back to the root.

Every file here may be hostile: reads are bounded, and links are not followed.
"""

from __future__ import annotations

import os

from rootsd.disk.git_pointer import GIT, find_git_directory
from rootsd.disk.git_settings import worktree_setting
from rootsd.disk.links import final_path
from rootsd.disk.reader import REF_CAP, read_small


def shared_git_folder(root: bytes) -> bytes | None:
    """Return the git directory outside `root` that serves it, or None.

    For a worktree, this is the common directory of the repository; for a submodule, its own
    directory in the main repository. Both must point back to `root`.
    """
    try:
        own = find_git_directory(root)
        if own is None:
            return None
        if os.path.lexists(own + b"/commondir"):
            return _common_directory(root, own)
        back = worktree_setting(_read(own + b"/config"))
        if back is not None and final_path(os.path.join(own, back)) == root:
            return own
    except (OSError, ValueError):
        pass
    return None


def _common_directory(root: bytes, own: bytes) -> bytes | None:
    back = os.path.join(own, _read(own + b"/gitdir").strip())
    common = final_path(os.path.join(own, _read(own + b"/commondir").strip()))
    points_back = final_path(back) == root + b"/" + GIT
    return common if points_back and os.path.dirname(own) == common + b"/worktrees" else None


def _read(path: bytes) -> bytes:
    """Return the beginning of a regular file; empty for anything else."""
    folder, name = os.path.split(path)
    return read_small(os.path.join(final_path(folder), name), REF_CAP) or b""
