"""Remove a worktree that is a root of its own, for `git worktree remove ../NAME` inside.

Programs cannot remove the folder on which a root is mounted, nor what is protected in it. So the
`git` in front of theirs empties the folder (see `session.worktree_inside`) and asks the warden,
which takes the root away and then removes the rest: what is protected, the `.git` file, the
folder, and git's record, in this order. If that stops anywhere, git still knows the worktree, and
removes it outside.

This removes nothing that a program could keep from git, and no more than git does: programs can
write the worktree and its repository, and whatever else is left in the folder stops the removal.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import NamedTuple

from rootsd.core.access import Access
from rootsd.core.mount_plan import DesiredMount, MountPurpose
from rootsd.core.paths import contains, text_of
from rootsd.disk.git_pointer import find_git_directory
from rootsd.disk.links import final_path
from rootsd.wall.git.directories import recorded_worktree
from rootsd.wall.git.protected import Protection
from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.kernel.root_folder import open_root
from rootsd.wall.system_calls import closing, open_below, open_path


class Refused(Exception):
    """Nothing was changed. The message says why."""


class ShownWorktree(NamedTuple):
    """A root that is a worktree, and the root or git directory with git's `record` of it.

    `record` is relative to the latter. `protected` has what programs cannot remove in it, and
    `uncover_record` takes the covers of the record away, so that this process can remove that.
    """

    mount: DesiredMount
    repository: DesiredMount
    record: bytes
    protected: Mapping[bytes, Protection]
    uncover_record: Callable[[], None]


def check_removable(worktree: ShownWorktree, shown: Iterable[bytes]) -> None:
    """Raise Refused unless programs can write all of a worktree and its record.

    `shown` are the paths of all roots and git directories that they see.
    """
    mount, repository, record, *_ = worktree
    if mount.identity is None or mount.checkout or repository.purpose is not MountPurpose.ROOT:
        raise Refused("its checkout is no root here")
    if {mount.access, repository.access} != {Access.READ_WRITE}:
        raise Refused("it or its checkout is read-only")
    others = {*shown} - {mount.path}
    inner = others - {repository.path}
    if mount.masks or any(contains(mount.path, each) for each in others):
        raise Refused("another root or a denied folder lies in it")
    if any(contains(each, mount.path) for each in others):
        raise Refused("it lies in another root")
    own = repository.path + b"/" + record
    if any(contains(repository.path, each) and contains(each, own) for each in inner):
        raise Refused("its repository lies in another root")
    _check_leads_back(worktree)


def remove_worktree(worktree: ShownWorktree) -> None:
    """Remove an empty worktree that programs do not see any more, and git's record of it.

    Raises Refused if it is not empty or not the worktree of this record. Raises OSError if only
    a part could be removed.
    """
    path, own = worktree.mount.path, worktree.record
    with ExitStack() as opened:
        try:
            folder, repository = (
                opened.enter_context(closing(open_root(each)))
                for each in (worktree.mount, worktree.repository)
            )
        except OSError as error:
            raise Refused("it or its checkout is another folder now") from error
        if recorded_worktree(repository, worktree.repository.path, own) != path:
            raise Refused("git's record does not lead to it")
        _check_leads_back(worktree)
        with closing(os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)) as content:
            _check_empty(content, worktree.protected)
            for entry in sorted(os.listdir(content), key=lambda each: each == ".git"):
                _remove(entry, content)
        above, name = os.path.split(path)
        with closing(open_path(above, os.O_DIRECTORY)) as parent:
            os.rmdir(name, dir_fd=parent)
        worktree.uncover_record()  # nothing leads there any more
        group, name = os.path.split(own)
        with closing(open_below(repository, group, os.O_DIRECTORY)) as records:
            remove_tree(os.fsdecode(name), records)
        common, name = os.path.split(group)
        with suppress(OSError), closing(open_below(repository, common or b".")) as directory:
            os.rmdir(name, dir_fd=directory)  # as git does, if it is empty


def _check_leads_back(worktree: ShownWorktree) -> None:
    """Raise Refused if the `.git` file leads elsewhere, or nowhere: the disk may be away."""
    own = final_path(worktree.repository.path + b"/" + worktree.record)
    if find_git_directory(worktree.mount.path) != own:
        raise Refused("its .git file does not lead to its checkout")


def _check_empty(folder: int, protected: Mapping[bytes, Protection]) -> None:
    """Raise Refused if something is left in a folder that is not protected."""
    for place, folders, files, _ in os.fwalk(b".", dir_fd=folder):
        for name in (*files, *folders):
            path = os.path.normpath(place + b"/" + name)
            protection = protected.get(path)
            if protection is None:
                raise Refused(f"{text_of(path)} is still there")
            if protection is not Protection.HELD and name in folders:
                folders.remove(name)  # nothing in it could be removed


def _remove(name: str, folder: int) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        remove_tree(name, folder)
    else:
        os.unlink(name, dir_fd=folder)
