"""Open the folder of a root, and check that it is the one that was approved."""

from __future__ import annotations

import errno
import os

from rootsd.confine.kernel import open_path
from rootsd.confine.protected import shared_git_folder
from rootsd.core.view import DesiredMount, FolderIdentity, MountPurpose
from rootsd.disk.inode import birth_time_ns_fd, file_handle


class FolderChanged(OSError):
    """An error: the folder at this path is not the one that was approved."""


def open_root(desired: DesiredMount) -> int:
    """Return an O_PATH descriptor of the folder.

    Raises FolderChanged if another folder is there now, or OSError.
    """
    if desired.purpose is MountPurpose.SHARED_GIT:
        _check_points_back(desired)
    folder = _open_folder(desired.path)
    if desired.identity is not None and not desired.identity.matches(_identity(folder)):
        os.close(folder)
        raise FolderChanged(errno.ESTALE, "another folder is there now")
    return folder


def _open_folder(path: bytes) -> int:
    try:
        return open_path(path, os.O_DIRECTORY)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise FolderChanged(errno.ESTALE, "something else is there now") from error
        raise


def _identity(folder: int) -> FolderIdentity:
    found = os.fstat(folder)
    born_ns = birth_time_ns_fd(folder, found)
    return FolderIdentity(found.st_ino, found.st_uid, file_handle(folder), born_ns)


def _check_points_back(desired: DesiredMount) -> None:
    if shared_git_folder(desired.owner) != desired.path:
        raise FolderChanged(errno.ESTALE, "the git directory does not point back to the root")
