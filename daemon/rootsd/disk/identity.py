"""Identify folders, so that a folder that replaces another one is recognized.

Identifies directories, so that one can be told from another that takes its path later.

An inode number alone is reused at once (on ext4 in 200 of 200 rounds of delete and recreate). The
kernel's file handle holds the inode's generation; where a file system gives none (overlayfs) the
birth time stands in. Sources: name_to_handle_at(2), statx(2), ioctl FS_IOC_GETFSUUID, statvfs(3).

The doctor's probe of a file system: by what can a folder there be told from another?
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Callable
from enum import Enum
from functools import lru_cache

from rootsd.core.doctor import DoctorFinding, ok, warning
from rootsd.core.labels import safe_label
from rootsd.core.model import GitEntry, Identity
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import (
    REF_CAP,
    OpenFolder,
    birth_time_ns_fd,
    open_folder,
    read_small,
    resolve_path,
)

_AT_EMPTY_PATH = 0x1000
_GITFILE = b".git"
_GITFILE_PREFIX = b"gitdir: "
_HANDLE_HEADER = struct.Struct("Ii")
_MAX_HANDLE = 128
# A type: to make one of it costs a tenth of what `create_string_buffer` does.
_HandleBuffer = ctypes.c_char * (_HANDLE_HEADER.size + _MAX_HANDLE)
_FS_IOC_GETFSUUID = 0x80111500


class PathAbsence(Enum):
    """What a failure to reach a path says about it."""

    GONE = "gone"
    UNREACHABLE = "unreachable"


if sys.platform == "linux":
    import fcntl

    _name_to_handle_at = ctypes.CDLL(None, use_errno=True).name_to_handle_at
    _name_to_handle_at.argtypes = [
        ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
    ]  # fmt: skip

    def file_handle(fd: int) -> bytes | None:
        """Return the file handle, its type in front, or None if the file system has none."""
        buffer = _HandleBuffer()
        _HANDLE_HEADER.pack_into(buffer, 0, _MAX_HANDLE, 0)
        mount_id = ctypes.c_int()
        if _name_to_handle_at(fd, b"", buffer, ctypes.byref(mount_id), _AT_EMPTY_PATH) < 0:
            return None
        size, kind = _HANDLE_HEADER.unpack_from(buffer, 0)
        end = _HANDLE_HEADER.size + int(size)
        return struct.pack("i", kind) + buffer.raw[_HANDLE_HEADER.size : end]

    def _file_system_uuid(fd: int) -> bytes | None:
        buffer = bytearray(17)
        try:
            fcntl.ioctl(fd, _FS_IOC_GETFSUUID, buffer)
        except OSError:
            return None
        return bytes(buffer[1 : 1 + buffer[0]])

else:

    def file_handle(fd: int) -> bytes | None:  # noqa: ARG001
        """Return the file handle, its type in front, or None if the file system has none."""
        return None

    def _file_system_uuid(_fd: int) -> bytes | None:
        return None


def read_gitfile(work: bytes, dir_fd: int | None = None) -> bytes | None:
    """The path that the file `.git` in the folder `work`, open at `dir_fd` if given, names."""
    marker = _GITFILE if dir_fd is not None else work + b"/" + _GITFILE
    text = read_small(marker, REF_CAP, dir_fd)
    if text is None or not text.startswith(_GITFILE_PREFIX):
        return None
    return resolve_path(work, text.removeprefix(_GITFILE_PREFIX).strip())


def _file_system_id_fd(fd: int) -> bytes:
    uuid = _file_system_uuid(fd)
    # An image made without a UUID answers with zeros.
    if uuid is not None and any(uuid):
        return _interned(b"uuid:" + uuid)
    return _interned(b"fsid:%x" % (os.fstatvfs(fd).f_fsid & 0xFFFFFFFFFFFFFFFF))


@lru_cache(maxsize=64)
def _interned(filesystem: bytes) -> bytes:
    """The same object each time: thousands of identities hold it."""
    return filesystem


def identify(path: bytes) -> Identity:
    """The identity of the directory at `path`, all of it from one descriptor.

    Raises OSError: NotADirectoryError also for a link, whatever it leads to; FileNotFoundError,
    PermissionError and so on as open(2) says; TimeoutError where its `.git` file leads to where
    nobody answers.
    """
    with OpenFolder(path) as folder:
        return identify_open_folder(folder)


def identify_open_folder(folder: OpenFolder, entry: GitEntry | None = None) -> Identity:
    """The same of a folder that is open, where `entry` is its `.git` as far as that is known.

    Raises as `identify`.
    """
    if (failure := folder.failure) is not None:
        if isinstance(failure, OSError) and failure.errno == errno.ELOOP:
            told = "a link, not a folder"
            raise NotADirectoryError(errno.ENOTDIR, told, folder.path) from failure
        raise failure
    entry = entry or _git_entry(folder.fd)
    if entry is not GitEntry.FILE:
        return _identify_fd(folder.fd, entry)
    # The file before what it names: if another one comes in between, its birth does not fit.
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
    """Raises OSError where the folder may not be searched: then nothing can be said of it."""
    try:
        mode = os.lstat(b".git", dir_fd=fd).st_mode
    except FileNotFoundError:
        return GitEntry.NONE
    return GitEntry.FOLDER if stat.S_ISDIR(mode) else GitEntry.FILE


def _git_target(fd: int, path: bytes) -> Identity | None:
    """The directory that the file `.git` in the folder open at `fd`, `path`, leads to.

    Raises TimeoutError where a look there might not end: then nothing can be said of the folder.
    """
    target = read_gitfile(path, fd)
    if target is None:
        return None
    if not may_follow(target):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), target)
    with OpenFolder(target) as leads_to:
        return None if leads_to.failure is not None else _identify_fd(leads_to.fd)


def file_system_id(path: bytes) -> bytes:
    """The id of the file system that holds the directory `path`. Raises OSError."""
    fd = open_folder(path)
    try:
        return _file_system_id_fd(fd)
    finally:
        os.close(fd)


def classify_absence(
    path: bytes, within: bytes | None, filesystem: bytes | None
) -> PathAbsence | None:
    """Whether nothing is at `path` (proven), or nothing can be said; None if a directory is there.

    `within` is the configured parent, or None for a folder that lies in none: then the folder that
    should hold it must be there. `filesystem` is where the project was last seen: if its nearest
    living ancestor lies on another one, a file system was unmounted or mounted over, and an empty
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
    """The nearest ancestor of `path` that is a directory. OSError if out of reach."""
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
    """By what a folder below `path` is told from another that takes its place."""
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
