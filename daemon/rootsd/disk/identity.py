"""Identify folders, so that a folder that replaces another one is recognized.

An inode number alone is not enough, because file systems reuse it at once (ext4 did in 200 of 200
rounds of delete and create). The kernel's file handle includes the inode's generation. On a file
system without handles (overlayfs), the birth time takes its place.

Sources: statx(2), ioctl FS_IOC_GETFSUUID, statvfs(3).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from enum import Enum
from functools import lru_cache

from rootsd.core.doctor import DoctorFinding, ok, warning
from rootsd.core.labels import safe_label
from rootsd.core.model import GitEntry, Identity
from rootsd.disk.file_handle import file_handle
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import (
    REF_CAP,
    OpenFolder,
    birth_time_ns_fd,
    open_folder,
    read_small,
    resolve_path,
)

_GITFILE = b".git"
_GITFILE_PREFIX = b"gitdir: "
_FS_IOC_GETFSUUID = 0x80111500


class PathAbsence(Enum):
    """Why a path cannot be reached."""

    GONE = "gone"
    UNREACHABLE = "unreachable"


if sys.platform == "linux":
    import fcntl

    def _file_system_uuid(fd: int) -> bytes | None:
        buffer = bytearray(17)
        try:
            fcntl.ioctl(fd, _FS_IOC_GETFSUUID, buffer)
        except OSError:
            return None
        return bytes(buffer[1 : 1 + buffer[0]])

else:

    def _file_system_uuid(_fd: int) -> bytes | None:
        return None


def read_gitfile(work: bytes, dir_fd: int | None = None) -> bytes | None:
    """Return the path that the file `.git` of the folder `work` names, or None.

    `dir_fd` is a descriptor of that folder, if one is open.
    """
    marker = _GITFILE if dir_fd is not None else work + b"/" + _GITFILE
    text = read_small(marker, REF_CAP, dir_fd)
    if text is None or not text.startswith(_GITFILE_PREFIX):
        return None
    return resolve_path(work, text.removeprefix(_GITFILE_PREFIX).strip())


def _file_system_id_fd(fd: int) -> bytes:
    uuid = _file_system_uuid(fd)
    # An image made without a UUID reports zeros.
    if uuid is not None and any(uuid):
        return _interned(b"uuid:" + uuid)
    return _interned(b"fsid:%x" % (os.fstatvfs(fd).f_fsid & 0xFFFFFFFFFFFFFFFF))


@lru_cache(maxsize=64)
def _interned(filesystem: bytes) -> bytes:
    """Return the same object for equal ids: thousands of identities hold it."""
    return filesystem


def identify(path: bytes) -> Identity:
    """Return the identity of the directory at `path`, all of it from one descriptor.

    Raises OSError: NotADirectoryError also for a link, whatever it leads to; FileNotFoundError,
    PermissionError, and so on as open(2) does; TimeoutError if its `.git` file leads to a mount
    that does not respond.
    """
    with OpenFolder(path) as folder:
        return identify_open_folder(folder)


def identify_open_folder(folder: OpenFolder, entry: GitEntry | None = None) -> Identity:
    """Return the identity of an open folder; `entry` is its `.git` if the caller knows it.

    Raises as `identify`.
    """
    if (failure := folder.failure) is not None:
        if isinstance(failure, OSError) and failure.errno == errno.ELOOP:
            message = "a link, not a folder"
            raise NotADirectoryError(errno.ENOTDIR, message, folder.path) from failure
        raise failure
    entry = entry or _git_entry(folder.fd)
    if entry is not GitEntry.FILE:
        return _identify_fd(folder.fd, entry)
    # Read the file before its target: if the file is replaced in between, its birth time differs.
    born = folder.born_ns(b".git")
    return _identify_fd(folder.fd, entry, _git_target(folder.fd, folder.path), born)


def _identify_fd(
    fd: int,
    entry: GitEntry | None = None,
    target: Identity | None = None,
    git_born_ns: int | None = None,
) -> Identity:
    found = os.fstat(fd)
    return Identity(
        filesystem=_file_system_id_fd(fd),
        inode=found.st_ino,
        handle=file_handle(fd),
        born_ns=birth_time_ns_fd(fd, found),
        owner=found.st_uid,
        git=entry,
        git_target=target,
        git_born_ns=git_born_ns,
    )


def _git_entry(fd: int) -> GitEntry:
    """Return what `.git` is. Raises OSError if the folder may not be searched."""
    try:
        mode = os.lstat(b".git", dir_fd=fd).st_mode
    except FileNotFoundError:
        return GitEntry.NONE
    return GitEntry.FOLDER if stat.S_ISDIR(mode) else GitEntry.FILE


def _git_target(fd: int, path: bytes) -> Identity | None:
    """Return the identity of the directory that the `.git` file of the open folder leads to.

    Raises TimeoutError if a lookup there might not end. Nothing is then known about the folder.
    """
    target = read_gitfile(path, fd)
    if target is None:
        return None
    if not may_follow(target):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), target)
    with OpenFolder(target) as leads_to:
        return None if leads_to.failure is not None else _identify_fd(leads_to.fd)


def file_system_id(path: bytes) -> bytes:
    """Return the id of the file system that holds the directory `path`. Raises OSError."""
    fd = open_folder(path)
    try:
        return _file_system_id_fd(fd)
    finally:
        os.close(fd)


def classify_absence(
    path: bytes, within: bytes | None, filesystem: bytes | None
) -> PathAbsence | None:
    """Return why no directory is at `path`, or None if one is there. GONE is proven.

    `within` is the configured parent. It is None for a folder outside all parents; the folder
    above must then exist. `filesystem` is where the project was last seen. If its nearest existing
    ancestor lies on another file system, something was unmounted or mounted over, and an empty
    mount point proves nothing.
    """
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return None
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return PathAbsence.UNREACHABLE
    anchor = within if within is not None and within != path else os.path.dirname(path)
    try:
        if not stat.S_ISDIR(os.lstat(anchor).st_mode):
            return PathAbsence.UNREACHABLE
        living = _nearest_existing_ancestor(path)
        same = filesystem is None or file_system_id(living) == filesystem
    except OSError:
        return PathAbsence.UNREACHABLE
    return PathAbsence.GONE if same else PathAbsence.UNREACHABLE


def _nearest_existing_ancestor(path: bytes) -> bytes:
    """Return the nearest ancestor that is a directory. Raises OSError if it is out of reach."""
    above = os.path.dirname(path)
    while above != os.path.dirname(above):
        try:
            if stat.S_ISDIR(os.lstat(above).st_mode):
                return above
        except (FileNotFoundError, NotADirectoryError):
            pass
        above = os.path.dirname(above)
    return above


def diagnose_identity(path: bytes, look: Callable[[bytes], Identity] = identify) -> DoctorFinding:
    """Return how folders on the file system of `path` can be told from their replacements.

    `rootsd doctor` shows the finding.
    """
    shown = safe_label(path, limit=None)
    try:
        found = look(path)
    except OSError as failure:
        return warning("identity", f"{shown}: {failure.strerror}", f"ls -ld {shown}")
    if found.handle is not None:
        return ok("identity", f"{shown} gives file handles")
    if found.born_ns is not None:
        return ok("identity", f"{shown} gives birth times, and no file handles")
    return warning(
        "identity",
        f"the file system of {shown} gives neither file handles nor birth times: a folder that "
        "is replaced may pass for the one that was approved",
        f"findmnt --target {shown}",
    )
