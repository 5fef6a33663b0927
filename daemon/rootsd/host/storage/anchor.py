"""The head anchor: how far the history of decisions had come, kept outside the database.

A database that was put back from an old copy is whole, and still wrong. The anchor tells: the
chain must contain it. A chain that goes on beyond it is normal, since a decision is committed
first and anchored next, and acknowledged after both.

The file `head` has two slots, each in a block of its own, overwritten in turn: a write that is
torn leaves the other. It is never made longer or renamed, so a full disk does not stop it.
"""

from __future__ import annotations

import hashlib
import os
import struct
from contextlib import suppress
from pathlib import Path

from rootsd.core.history import Head
from rootsd.host.private import open_private_file, sync, sync_path, unusable

HEAD_NAME = "head"
SLOT_SPACING = 4096
# magic, count of writes so far, seq, hash; then SHA-256 of these
_CONTENT = struct.Struct(">8sQQ32s")
_MAGIC = b"rootsd-1"
_SLOT_SIZE = _CONTENT.size + 32


class Anchor:
    """The open anchor of one state folder. `head` is what it holds, None where nothing does."""

    def __init__(self, file: Path, fd: int) -> None:
        self._file = file
        self._fd = fd
        self._count = 0
        self.head: Head | None = None
        for slot in range(2):
            count, head = _read(fd, slot)
            if count > self._count:
                self._count, self.head = count, head

    @classmethod
    def open(cls, folder: Path) -> Anchor:
        """The anchor of `folder`, made empty where it is missing; raises NotPrivate."""
        file = folder / HEAD_NAME
        fd = open_private_file(file)
        try:
            missing = 2 * SLOT_SPACING - os.fstat(fd).st_size
            if missing > 0:
                # Written out, not a hole: a later write must not need a new block.
                os.pwrite(fd, bytes(missing), 2 * SLOT_SPACING - missing)
                sync(fd)
                sync_path(folder)
            return cls(file, fd)
        except OSError as error:
            os.close(fd)
            raise unusable(file, error) from error

    def write(self, head: Head) -> None:
        """Make `head` the anchor, on disk when this returns. Raises NotPrivate; the anchor before
        it still stands then, and the next write goes to the same slot."""
        content = _CONTENT.pack(_MAGIC, self._count + 1, head.seq, head.hash)
        slot = content + hashlib.sha256(content).digest()
        try:
            os.pwrite(self._fd, slot, (self._count + 1) % 2 * SLOT_SPACING)
            sync(self._fd)
        except OSError as error:
            raise unusable(self._file, error) from error
        self._count += 1
        self.head = head

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # what it holds is on the disk since `write`
            os.close(self._fd)


def _read(fd: int, slot: int) -> tuple[int, Head | None]:
    """The count and head in a slot; count 0 where it holds nothing that was written whole."""
    data = os.pread(fd, _SLOT_SIZE, slot * SLOT_SPACING)
    content, digest = data[: _CONTENT.size], data[_CONTENT.size :]
    if len(data) < _SLOT_SIZE or hashlib.sha256(content).digest() != digest:
        return 0, None
    magic, count, seq, head_hash = _CONTENT.unpack(content)
    return (count, Head(seq, head_hash)) if magic == _MAGIC else (0, None)
