"""Lock a state folder for one daemon, and record which process holds the lock."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from rootsd.core.errors import Busy
from rootsd.core.record import BadRecord, from_line, to_line
from rootsd.files.private_files import (
    NotPrivate,
    display_path,
    ensure_private_folder,
    open_private_file,
    unusable_error,
)

LOCK_NAME = "lock"
RECORD_SIZE = 16 * 1024
_WAIT_S = 2.0


class LockRecord(NamedTuple):
    """The holder of the lock: its pid, its version, and its folders by name.

    A holder without folders is not a daemon. It is a command that reads or removes the store, and
    it releases the lock soon.
    """

    pid: int
    version: str
    places: Mapping[str, str]


class DaemonLock:
    """The lock on a state folder, held until `release` or the end of the process.

    It is a flock(2). The kernel releases it when the last copy of the descriptor is closed, even
    if the process is killed. A forked child has a copy, and must close `fd` at once.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def acquire(cls, folder: Path, holder: LockRecord) -> DaemonLock:
        """Take the lock on `folder`, and record `holder`.

        Waits a few seconds for a holder that is not a daemon. Raises Busy with the pid of the
        holder, and NotPrivate if the folder cannot be used.
        """
        ensure_private_folder(folder)
        file = folder / LOCK_NAME
        while (fd := _try_lock(file, holder)) is None:
            other = read_holder(folder)
            if (other is not None and other.places) or not _wait_until_free(file):
                raise _busy(folder, other)
        return cls(fd)

    def is_on(self, folder: Path) -> bool:
        """Return whether this lock is still the lock on `folder`, which may have been replaced."""
        return self.fd >= 0 and _is_still(folder / LOCK_NAME, self.fd)

    def release(self) -> None:
        """Erase the record and release the lock.

        The file stays. If it were removed, two processes could hold locks on two files.
        """
        if self.fd >= 0:
            _overwrite(self.fd, b"")
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _try_lock(file: Path, holder: LockRecord) -> int | None:
    """Return a descriptor that holds the lock, or None if another process has it."""
    while True:
        fd = open_private_file(file)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(file, fd):
                _write(fd, holder)
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError as error:
            os.close(fd)
            raise unusable_error(file, error) from error
        os.close(fd)  # the file was removed between open and lock, so lock the new one


def _wait_until_free(file: Path) -> bool:
    """Wait until the lock is free, and return whether it became free in time."""
    fd = open_private_file(file)
    # flock(2) has no timeout. Closing the descriptor during the call releases the lock once
    # granted.
    wait = threading.Thread(target=fcntl.flock, args=(fd, fcntl.LOCK_SH), daemon=True)
    wait.start()
    wait.join(_WAIT_S)
    os.close(fd)
    return not wait.is_alive()


def read_holder(folder: Path) -> LockRecord | None:
    """Return the record of the last holder of the lock on `folder`, or None if it was released.

    The record stays after a crash, so it does not prove that the process lives. Only `acquire`
    can tell.
    """
    try:
        fd = open_private_file(folder / LOCK_NAME, os.O_RDONLY)
    except NotPrivate:
        return None
    try:
        return from_line(LockRecord, os.pread(fd, RECORD_SIZE, 0))
    except BadRecord:
        return None
    finally:
        os.close(fd)


def _write(fd: int, holder: LockRecord) -> None:
    _overwrite(fd, to_line(holder))


def _overwrite(fd: int, text: bytes) -> None:
    # Write in place and with a fixed size, so that the next daemon can start on a full disk.
    os.pwrite(fd, text.ljust(RECORD_SIZE), 0)


def _is_still(file: Path, fd: int) -> bool:
    try:
        return os.path.samestat(file.lstat(), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _busy(folder: Path, holder: LockRecord | None) -> Busy:
    who = f" (pid {holder.pid}, version {holder.version})" if holder else ""
    return Busy(f"another rootsd{who} is at work in {display_path(folder)}", "rootsd status")
