"""Create folders and files that only this user can access, and sync them to the disk."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label

FOLDER_MODE = 0o700
FILE_MODE = 0o600
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))


class NotPrivate(RootsdError):
    """A folder or file of the daemon cannot be used, or others could reach it."""


def ensure_private_folder(folder: Path) -> None:
    """Make `folder` where it is missing, for good when this returns; raise NotPrivate unless it is
    a directory, no link, ours, writable, and closed to everybody else."""
    try:
        make_folder(folder)
        found = folder.lstat()
    except OSError as error:
        raise unusable_error(folder, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise NotPrivate(f"{display_path(folder)} is not a folder", f"mv {folder} {folder}.old")
    if found.st_uid != os.geteuid():
        raise NotPrivate(
            f"{display_path(folder)} belongs to user {found.st_uid}, not to you",
            "set ROOTSD_DIR to a folder of your own",
        )
    if stat.S_IMODE(found.st_mode) & ~FOLDER_MODE:
        raise NotPrivate(f"{display_path(folder)} is open to other users", f"chmod 700 {folder}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        is_locked = os.statvfs(folder).f_flag & os.ST_RDONLY
        remedy = "remount that disk writable" if is_locked else f"chmod 700 {folder}"
        raise NotPrivate(f"{display_path(folder)} is not writable", remedy)


def make_folder(folder: Path) -> None:
    """Create `folder`, and each folder above it that is missing, for this user alone.

    Raises OSError.
    """
    with suppress(FileExistsError):  # another one may make it at this moment, too
        try:
            folder.mkdir(FOLDER_MODE)
        except FileNotFoundError:
            make_folder(folder.parent)
            folder.mkdir(FOLDER_MODE)
    # Also where it was there: whoever made it may have been killed before the name was on disk.
    with suppress(PermissionError):
        sync_path(folder.parent)


def path_exists(path: Path) -> bool:
    """Whether anything has the name `path`. Raises NotPrivate where that cannot be told, which
    `Path.exists` gives as an answer or as any OSError, depending on the version of Python."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable_error(path, error) from error
    return True


def list_names(folder: Path) -> list[str]:
    """The names in `folder`, none where it is missing. Raises NotPrivate where it cannot be read,
    which `Path.glob` passes over in silence."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable_error(folder, error) from error


def open_private_file(file: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """A descriptor of `file`, made with mode 0600 where `flags` say so; raises NotPrivate when it
    cannot be opened, or is a link, no regular file, or another user's."""
    try:
        # O_NONBLOCK: a FIFO in this place must not hang the daemon.
        safe = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        fd = os.open(file, flags | safe, FILE_MODE)
    except OSError as error:
        raise unusable_error(file, error) from error
    try:
        _make_private(fd, file)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _make_private(fd: int, file: Path) -> None:
    try:
        found = os.fstat(fd)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if is_ours and stat.S_IMODE(found.st_mode) & ~FILE_MODE:
            os.fchmod(fd, FILE_MODE)
    except OSError as error:
        raise unusable_error(file, error) from error
    if not is_ours:
        raise NotPrivate(f"{display_path(file)} is not a file of yours", f"mv {file} {file}.old")


def ensure_private_file(file: Path) -> None:
    """Make `file` with mode 0600 where it is missing; raises as `open_private_file` does."""
    fd = open_private_file(file)
    try:
        os.close(fd)
    except OSError as error:
        raise unusable_error(file, error) from error


def sync(fd: int) -> None:
    """Return when what was written to `fd` has reached the disk itself."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync(2) stops at the drive's cache there
    else:
        os.fsync(fd)


def sync_path(path: Path) -> None:
    """Return when the file, or the names in the folder, at `path` have reached the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def unusable_error(path: Path, error: OSError) -> NotPrivate:
    """The error to raise for `path` when the system says `error`."""
    if error.errno == errno.ELOOP:  # it was opened with O_NOFOLLOW
        return NotPrivate(f"{display_path(path)} is a link", f"mv {path} {path}.old")
    reason = error.strerror or str(error)
    if error.errno in NO_ROOM:
        remedy = "free some space on that disk, then try again"
        return NotPrivate(f"{display_path(path)} cannot be written: {reason}", remedy)
    return NotPrivate(
        f"{display_path(path)} cannot be used: {reason}", f"ls -ld {path.parent} {path}"
    )


def display_path(path: Path) -> str:
    """`path` as text that is safe on a terminal."""
    return safe_label(os.fsencode(path), limit=None)
