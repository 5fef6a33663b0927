"""Create folders and files that only this user can access, and sync them to the disk.

Lean programs open files with this module, so it does not load `pathlib`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rootsd.core.errors import RootsdError
from rootsd.core.labels import safe_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    AnyPath = Path | str | os.PathLike[str]

FOLDER_MODE = 0o700
FILE_MODE = 0o600
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT))


class NotPrivate(RootsdError):
    """A folder or file of the daemon is unusable, or open to other users."""


def ensure_private_folder(folder: Path) -> None:
    """Create `folder` if it is missing, and sync it to the disk.

    Raises NotPrivate unless it is a directory, not a link, owned by this user, writable, and
    closed to all others.
    """
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
            "set ROOTSD_DIR to your own folder",
        )
    if stat.S_IMODE(found.st_mode) & ~FOLDER_MODE:
        raise NotPrivate(f"{display_path(folder)} is open to other users", f"chmod 700 {folder}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        is_locked = os.statvfs(folder).f_flag & os.ST_RDONLY
        remedy = "remount that disk writable" if is_locked else f"chmod 700 {folder}"
        raise NotPrivate(f"{display_path(folder)} is not writable", remedy)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`, which is made if it is missing. Raises NotPrivate."""
    ensure_private_folder(folder)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, for this user only.

    Raises OSError.
    """
    with suppress(FileExistsError):  # another process may create it at the same time
        try:
            folder.mkdir(FOLDER_MODE)
        except FileNotFoundError:
            make_folder(folder.parent)
            folder.mkdir(FOLDER_MODE)
    # Sync even if the folder existed: the process that created it may have been killed before the
    # name was on the disk.
    with suppress(PermissionError):
        sync_path(folder.parent)


def path_exists(path: Path) -> bool:
    """Return whether `path` exists, as a file of any type. Raises NotPrivate if that is unknown.

    `Path.exists` would return False or raise OSError then, depending on the version of Python.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unusable_error(path, error) from error
    return True


def list_names(folder: Path) -> list[str]:
    """Return the names in `folder`, or none if it is missing.

    Raises NotPrivate if it cannot be read, which `Path.glob` would ignore.
    """
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable_error(folder, error) from error


def open_private_file(file: AnyPath, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open `file`. If `flags` has O_CREAT, create a missing file with mode 0600.

    Raises NotPrivate if it cannot be opened, is a link, is not a regular file, or belongs to
    another user.
    """
    try:
        # O_NONBLOCK: a FIFO at this path must not hang the daemon.
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


def _make_private(fd: int, file: AnyPath) -> None:
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
    """Create `file` with mode 0600 if it is missing. Raises what `open_private_file` raises."""
    fd = open_private_file(file)
    try:
        os.close(fd)
    except OSError as error:
        raise unusable_error(file, error) from error


def read_private_file(file: Path, limit: int) -> bytes:
    """Return the first `limit` bytes of `file`. Raises as `open_private_file` does."""
    fd = open_private_file(file, os.O_RDONLY)
    try:
        with open(fd, "rb") as stream:
            return stream.read(limit)
    except OSError as error:
        raise unusable_error(file, error) from error


def replace_private_file(file: Path, content: bytes, mode: int = FILE_MODE) -> None:
    """Replace `file` in one step with one that has this content and mode, and sync it to the disk.

    After a crash, `file` has the old content or the new one. Only one process at a time may
    replace the same file. Raises NotPrivate.
    """
    new = file.with_name(f".{file.name}.new")  # no file that a person would have
    try:
        fd = open_private_file(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with open(fd, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(fd, mode)
            sync(fd)
        new.replace(file)
        sync_path(file.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise unusable_error(file, error) from error


def sync(fd: int) -> None:
    """Flush what was written to `fd` to the disk."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # on macOS, fsync(2) stops at the drive's cache
    else:
        os.fsync(fd)


def sync_path(path: Path) -> None:
    """Flush the file at `path`, or the names in the folder, to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def unusable_error(path: AnyPath, error: OSError) -> NotPrivate:
    """Return the error to raise for `path` after `error`."""
    if error.errno == errno.ELOOP:  # because of O_NOFOLLOW
        return NotPrivate(f"{display_path(path)} is a link", f"mv {path} {path}.old")
    reason = error.strerror or str(error)
    if error.errno in NO_ROOM:
        remedy = "free some space on that disk, then try again"
        return NotPrivate(f"{display_path(path)} cannot be written: {reason}", remedy)
    return NotPrivate(
        f"{display_path(path)} cannot be used: {reason}", f"ls -ld {os.path.dirname(path)} {path}"
    )


def display_path(path: AnyPath) -> str:
    """Return `path` as text that is safe on a terminal."""
    return safe_label(os.fsencode(path), limit=None)
