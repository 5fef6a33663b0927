"""Open the folder of a root, and check that it is the one that was approved.

In a sandbox that maps user ids, such as `unshare -r`, a folder has another owner than for a daemon
outside. So the owner may be the approved one also as `/proc/self/uid_map` translates it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from rootsd.core.mount_plan import DesiredMount, FolderIdentity, MountPurpose
from rootsd.disk.inode import birth_time_ns_fd, file_handle
from rootsd.wall.git.shared_folder import shared_git_folder
from rootsd.wall.system_calls import closing, open_below, open_path


class FolderChanged(OSError):
    """An error: the folder at this path is not the one that was approved."""


def open_root(desired: DesiredMount) -> int:
    """Return an O_PATH descriptor of the folder.

    Raises FolderChanged if another folder is there now, or OSError.
    """
    if not desired.checkout:
        return _open_verified(desired.path, desired.identity)
    if desired.purpose is MountPurpose.SHARED_GIT:
        _check_points_back(desired)
    checkout = _open_verified(desired.checkout, desired.identity)
    inside = desired.path[len(desired.checkout) + 1 :]
    if not inside:  # the checkout is a bare repository
        return checkout
    with closing(checkout), _other_kinds_as_changes():
        return open_below(checkout, inside, os.O_DIRECTORY)


def _open_verified(path: bytes, identity: FolderIdentity | None) -> int:
    with _other_kinds_as_changes():
        folder = open_path(path, os.O_DIRECTORY)
    if identity is not None:
        seen = identity_of(folder)
        outside = seen._replace(owner=_owner_outside(seen.owner))
        if not (identity.covers(seen) or identity.covers(outside)):
            os.close(folder)
            raise FolderChanged(errno.ESTALE, "another folder is there now")
    return folder


@contextmanager
def _other_kinds_as_changes() -> Iterator[None]:
    """Raise FolderChanged if something other than a folder is opened."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise FolderChanged(errno.ESTALE, "something else is there now") from error
        raise


def identity_of(folder: int) -> FolderIdentity:
    """Return the identity of an open folder."""
    found = os.fstat(folder)
    born_ns = birth_time_ns_fd(folder, found)
    handle = file_handle(folder)
    return FolderIdentity(found.st_ino, found.st_uid, handle, born_ns, found.st_dev)


@cache
def mapped_owners() -> tuple[tuple[int, ...], ...]:
    """Return the user ids of this namespace, those outside, and how many: see user_namespaces(7).

    The first call keeps the answer, so make it before this process enters another namespace.
    """
    with open("/proc/self/uid_map", "rb") as lines:
        return tuple(tuple(map(int, line.split())) for line in lines)


def _owner_outside(owner: int) -> int:
    for first, outside, count in mapped_owners():
        if first <= owner < first + count:
            return owner - first + outside
    return owner


def _check_points_back(desired: DesiredMount) -> None:
    if shared_git_folder(desired.owner) != desired.path:
        raise FolderChanged(errno.ESTALE, "the git directory does not point back to the root")
