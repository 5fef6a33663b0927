"""Notes of an agent's hook about where a call of a tool works, for the proxy of the server.

The roots of a session are those of its main agent. Another agent in it may work in a worktree of
its own, and its hook is the only one who says so, just before the call. A note is a file in the
runtime folder with the id of the call. If it cannot be left, the call goes where the session is.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

_FOLDER = b"/calls"
_MAX_ID = 128
_MAX_BYTES = 4096
_OLD_S = 60.0
"""After this time, nobody will take a note any more: the server is not behind rootsd."""


def leave_note(runtime_dir: bytes, call: str, folder: str) -> None:
    """Note that the call of a tool works in `folder`. Raises OSError and ValueError."""
    path = _path(runtime_dir, call)
    with suppress(FileExistsError):
        os.mkdir(runtime_dir + _FOLDER, 0o700)
    _remove_old(runtime_dir + _FOLDER)
    note = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(note, os.fsencode(folder))
    finally:
        os.close(note)


def take_note(runtime_dir: bytes, call: str) -> bytes | None:
    """Remove and return the folder in which a call works, or None if there is no note."""
    try:
        path = _path(runtime_dir, call)
        note = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    try:
        os.unlink(path)
        return os.read(note, _MAX_BYTES) or None
    except OSError:
        return None
    finally:
        os.close(note)


def _path(runtime_dir: bytes, call: str) -> bytes:
    if not call.replace("_", "").replace("-", "").isalnum() or len(call) > _MAX_ID:
        raise ValueError("not the id of a call")
    return runtime_dir + _FOLDER + b"/" + call.encode("ascii")


def _remove_old(folder: bytes) -> None:
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _OLD_S:
                os.unlink(entry.path)
