"""Read the settings of a git repository without following includes.

Sources: git-config(1), gitrepository-layout(5).
"""

from __future__ import annotations

import re

from rootsd.disk.git_settings import read_settings
from rootsd.disk.reader import CONFIG_CAP, REF_CAP, read_small
from rootsd.vcs.git.repository import GitDirs

_REMOTE_URL = re.compile(r"remote\..*\.url", re.DOTALL)
_BRANCH = b"ref: refs/heads/"
# A repository with reftables names no branch in HEAD.
_REFTABLE_HEAD = b".invalid"


def read_git_config(dirs: GitDirs) -> bytes:
    """Return the text of the settings in a repository's own files."""
    text = read_small(dirs.common + b"/config", CONFIG_CAP) or b""
    if b"worktreeconfig" in text.lower():  # the extension that lets git read a second file
        text += b"\n" + (read_small(dirs.folder + b"/config.worktree", CONFIG_CAP) or b"")
    return text


def is_safe_for_libgit2(dirs: GitDirs) -> bool:
    """Return whether the files that libgit2 reads first are small regular files.

    This does not check files that they include.
    """
    config = read_small(dirs.common + b"/config", CONFIG_CAP)
    head = read_small(dirs.folder + b"/HEAD", REF_CAP)
    return config is not None and len(config) < CONFIG_CAP and head is not None


def git_origin(dirs: GitDirs) -> bytes | None:
    """Return the address of the remote `origin`, or else of the first remote, or None."""
    settings = read_settings(read_git_config(dirs))
    addresses = {name: value for name, value in settings if _REMOTE_URL.fullmatch(name)}
    return addresses.get("remote.origin.url") or next(iter(addresses.values()), None)


def git_branch(dirs: GitDirs) -> bytes | None:
    """Return the checked-out branch, or None for a detached HEAD and for reftables."""
    head = (read_small(dirs.folder + b"/HEAD", REF_CAP) or b"").strip()
    branch = head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else b""
    return None if branch in (b"", _REFTABLE_HEAD) else branch
