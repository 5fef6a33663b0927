"""Find the checkout whose git directory lies elsewhere, from that git directory.

After `git init --separate-git-dir`, or the same of `git clone`, the `.git` file of the checkout
names the git directory, and nothing there names the checkout. So a worktree, which leads to the
git directory only, cannot tell to which checkout it belongs. This module remembers each checkout
that names such a directory, once somebody has looked at it.

That alone proves nothing: anybody can write a `.git` file. There are two proofs, and both count:

* Git makes the git directory together with the checkout, or with its `.git` file. Nobody can
  choose a birth time, so a folder that was unpacked later does not have the right one.
* The index in the git directory, which only git writes, has the inode and change time of each file
  of the checkout, as git's last lstat(2) returned them. A copy does not have these files. A link
  to them is not followed, and a file with a second hard link does not count.

Each of them has a gap. When all is copied to another disk, everything is born then. And if git
runs in a folder that only claims the git directory, it records the files there, where they have
the same content.

Once proven, it stays proven while the checkout keeps its `.git` file, also in the next run.
Without proof, the setting `core.worktree` can name the checkout.

Sources: gitformat-index(5), git-init(1), and `separate_git_dir` in git's setup.c.
"""

from __future__ import annotations

import os
import stat

from rootsd.core.decide import CREATION_WINDOW_NS
from rootsd.disk.git_pointer import GIT, find_git_directory
from rootsd.disk.hung_mounts import follow, may_follow
from rootsd.disk.reader import OpenFolder, birth_time_ns, stat_no_follow
from rootsd.vcs.git.index import is_recorded_file, read_first_entries

_MAX_CHECKOUTS = 64  # that name one git directory: all but one of them are false
_Files = tuple[int, ...]

# By git directory and checkout, both real paths. The value identifies the files for which it is
# proven, or is None as long as nothing is.
_KNOWN: dict[bytes, dict[bytes, _Files | None]] = {}


def remember_checkout(work: bytes, git: bytes) -> None:
    """Remember that the `.git` of the folder `work` names the git directory `git` elsewhere."""
    checkouts = _KNOWN.setdefault(git, {})
    if len(checkouts) < _MAX_CHECKOUTS:
        checkouts.setdefault(work, None)


def keep_proof(work: bytes, git: bytes) -> None:
    """Count it as proven that `git` belongs to `work`, because an earlier run of rootsd proved it.

    The folder, its `.git`, and `git` must be the same as then.
    """
    with OpenFolder(work) as folder:
        if (now := _files_of(folder, git)) is not None:
            _KNOWN.setdefault(git, {})[work] = now


def separate_checkout(git: bytes) -> bytes | None:
    """Return the checkout to which the git directory `git` provably belongs, or None.

    Only a checkout that was remembered can be found. If there are two, as after a bind mount, the
    result is the one that was proven or remembered first.
    """
    _remember_moved(git)
    checkouts = _KNOWN.get(git, {})
    for work, proof in sorted(checkouts.items(), key=lambda known: known[1] is None):
        if not may_follow(work):
            continue
        with OpenFolder(work) as folder:
            now = _files_of(folder, git)
            if now is None:
                checkouts.pop(work, None)
            elif now == proof or (_is_born_with(folder, git) and _is_indexed(folder, git)):
                checkouts[work] = now
                return work
    return None


def _remember_moved(git: bytes) -> None:
    """Remember the checkout of a git directory that was moved to `git` since it was proven."""
    try:
        data = stat_no_follow(git)
    except (OSError, ValueError):
        return
    for checkouts in tuple(_KNOWN.values()):
        for work, proof in tuple(checkouts.items()):
            if proof is not None and proof[-2:] == (data.st_dev, data.st_ino):
                remember_checkout(work, git)


def _files_of(work: OpenFolder, git: bytes) -> _Files | None:
    """Return what identifies a checkout, its `.git`, and `git`, or None if it does not lead there.

    It changes if one of them is replaced.
    """
    try:
        if work.failure or find_git_directory(work.path, work.fd, follow) != git:
            return None
        pointer, place, data = work.stat(GIT), os.fstat(work.fd), stat_no_follow(git)
    except (OSError, ValueError):
        return None
    ids = (number for each in (pointer, place, data) for number in (each.st_dev, each.st_ino))
    return pointer.st_ctime_ns, *ids


def _is_born_with(work: OpenFolder, git: bytes) -> bool:
    """Return whether the folder `work` or its `.git` was created together with `git`."""
    made = birth_time_ns(git)
    births = (work.born_ns(name) for name in (b".", GIT))
    return made is not None and any(
        born is not None and abs(born - made) <= CREATION_WINDOW_NS for born in births
    )


def _is_indexed(work: OpenFolder, git: bytes) -> bool:
    """Return whether one of the first files in the index of `git` lies in `work`."""
    with OpenFolder(git) as folder:
        for entry in read_first_entries(folder):
            try:
                found = work.stat(entry.name)
            except (OSError, ValueError):
                continue
            if (
                stat.S_ISREG(found.st_mode)
                and found.st_nlink == 1
                and is_recorded_file(entry, found)
            ):
                return True
    return False
