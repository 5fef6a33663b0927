"""Keep the empty folder and the server profiles in the runtime folder.

The empty folder stands for "no roots" in commands and answers. A server profile records when a
server asks for its roots. Both may be gone at the next start; then they are made again.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32
from collections.abc import Sequence
from contextlib import suppress

from rootsd.proxy.run.readiness import ServerProfile

_EMPTY_FOLDER = b"no-approved-roots"
_MAX_EMPTY_FOLDERS = 100
_SERVERS = b"servers"
_MAX_PROFILE_BYTES = 16


def make_empty_folder(runtime_dir: bytes) -> bytes | None:
    """Return a folder that is ours, empty, and closed to writes; None if none can be made.

    Only the superuser can put something into it. In that case the next call returns another
    folder.
    """
    for number in range(_MAX_EMPTY_FOLDERS):
        folder = runtime_dir + b"/" + _EMPTY_FOLDER + (b"-%d" % number if number else b"")
        try:
            _make(runtime_dir)
            with suppress(FileExistsError):
                os.mkdir(folder, 0o500)
            found = os.lstat(folder)
            empty = stat.S_ISDIR(found.st_mode) and not os.listdir(folder)
        except OSError:
            return None
        if empty and found.st_uid == os.geteuid() and not found.st_mode & 0o277:
            return folder
    return None


class ServerProfileFile:
    """The stored profile of one server, found by the server's command."""

    def __init__(self, runtime_dir: bytes, words: Sequence[str]) -> None:
        key = "\0".join(words).encode("utf-8", "surrogateescape")
        # Two servers with one checksum share a profile, and wait for each other's time at most. A
        # better checksum would need hashlib, which takes 3 ms to load.
        self._path = runtime_dir + b"/" + _SERVERS + b"/%08x" % crc32(key)

    def load(self) -> ServerProfile:
        """Return the stored profile, or `UNKNOWN`."""
        try:
            with open(self._path, "rb") as file:
                return ServerProfile(file.read(_MAX_PROFILE_BYTES).decode())
        except (OSError, ValueError):
            return ServerProfile.UNKNOWN

    def save(self, profile: ServerProfile) -> None:
        """Store the profile, if that is possible."""
        with suppress(OSError):
            _make(os.path.dirname(self._path))
            fresh = b"%s.%d" % (self._path, os.getpid())
            with open(fresh, "wb") as file:
                file.write(profile.encode())
            os.replace(fresh, self._path)


def _make(folder: bytes) -> None:
    """Make a private folder and its missing parents."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        _make(os.path.dirname(folder))
        os.mkdir(folder, 0o700)
