"""Find the directory to which a `.git` leads that is not itself that directory.

A `.git` may be a file with the line `gitdir: PATH`, as in a worktree and a submodule. Or it may be
a symbolic link to the directory, as the repo tool of Android and git-annex make it. Everybody who
wants to know where it leads asks this module, so that all of them get the same answer. There are
two steps:

1. `read_git_pointer` returns what the file or link names, without following anything.
2. `find_git_directory` returns the real path of that directory: each link on the way is resolved
   once, as git does. So a folder may move, and a link may take its place.

The answer proves nothing. Anybody can write a `.git` that names the repository of somebody else.
Whoever relies on it has to check that the directory links back.

Standard library only, because the lean programs import this module. Sources:
gitrepository-layout(5), and `read_gitfile_gently` in git's setup.c.
"""

from __future__ import annotations

import os

from rootsd.disk.links import real_path
from rootsd.disk.reader import read_small

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from collections.abc import Callable

    FollowPath = Callable[[bytes], bytes]

GIT = b".git"
_PREFIX = b"gitdir: "
_MAX_BYTES = 1 << 20  # as git


def named_directory(text: bytes) -> bytes | None:
    """Return the git directory that the text of a `.git` file names, or None for other text.

    As in git, spaces belong to the name, and a zero byte ends it.
    """
    if not text.startswith(_PREFIX):
        return None
    return text.removeprefix(_PREFIX).rstrip(b"\r\n").split(b"\0")[0] or None


def read_git_pointer(work: bytes, dir_fd: int | None = None) -> bytes | None:
    """Return the absolute path that the file or link `.git` of the folder `work` names, or None.

    Nothing is followed, so the path may lead through links. `dir_fd` is a descriptor of that
    folder, if one is open.
    """
    marker = GIT if dir_fd is not None else work + b"/" + GIT
    text = read_small(marker, _MAX_BYTES, dir_fd)
    named = None if text is None else named_directory(text)
    if text is None:
        try:
            named = os.readlink(marker, dir_fd=dir_fd)
        except (OSError, ValueError):
            return None
    return None if named is None else os.path.join(work, named)


def find_git_directory(
    work: bytes, dir_fd: int | None = None, follow: FollowPath = real_path
) -> bytes | None:
    """Return the real path of the directory to which the `.git` of the folder `work` leads.

    The result is None if `.git` is a directory itself or leads nowhere. `follow` returns the real
    path of a path, and may raise OSError if it cannot tell; this function then raises it, too.
    """
    named = read_git_pointer(work, dir_fd)
    if named is None:
        return None
    real = follow(named)
    return real if os.path.isdir(real) else None
