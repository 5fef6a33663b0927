"""The lock that a client takes while it writes its own settings file.

Claude Code uses the npm package proper-lockfile. Its lock is a folder named like the file, with
`.lock` at the end. Making the folder takes the lock, and removing it releases the lock. A holder
renews the folder's time of change. A lock that nobody has renewed for ten seconds is stale.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rootsd.core.errors import Busy
from rootsd.files.private_files import display_path

STALE_S = 10.0
_WAIT_S = 15.0
_RETRY_S = 0.05


@contextmanager
def hold_lock_folder(file: Path, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Hold the lock of `file`, after links. Raises Busy if another process keeps it.

    Raises OSError if the folder cannot be made.
    """
    lock = Path(f"{os.path.realpath(file)}.lock")
    deadline = time.monotonic() + wait_s
    while not _take(lock):
        if time.monotonic() > deadline:
            shown = display_path(lock)
            raise Busy(f"another program holds {shown}", "close the client, then try again")
        threading.Event().wait(_RETRY_S)  # the file system reports no release to wait for
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            lock.rmdir()


def _take(lock: Path) -> bool:
    try:
        lock.mkdir()
    except FileExistsError:
        with suppress(FileNotFoundError):
            if abs(time.time() - lock.lstat().st_mtime) > STALE_S:
                lock.rmdir()  # taken in the next round, by one process alone
        return False
    return True
