"""The anchors record, outside the database, how far the history of decisions had come.

A database that was put back from an old copy is whole, and still wrong. The anchors show this,
because the chain of decisions must contain the head that each anchor records.

There are two, and each detects a different restore:

* The file `head` lies beside the database. It detects an older database in an otherwise current
  state folder.
* The second anchor lies outside the state folder (`rootsd.host.places`), so it does not go back
  in time with that folder. It detects an older state folder. It also records the key of the one
  database that it belongs to; see `rootsd.host.storage.binding`.

Order of writes. A decision is acknowledged after these steps, each of which is on the disk before
the next begins:

1. The transaction with the decision is committed.
2. The head is written to the first anchor.
3. The head is written to the second anchor.

A crash after step 1 or 2 leaves a chain that goes on beyond an anchor. That is normal, and the
next start writes both anchors before anything else can be decided. An anchor never runs ahead of
the chain, so no crash looks like a restore. After an acknowledgment, both anchors record the
decision, so an older state folder, which lacks it, never passes.

An anchor file has two slots, each in a block of its own, overwritten in turn: a torn write leaves
the other. The file never grows and is never renamed, so a full disk does not stop a write.
"""

from __future__ import annotations

import hashlib
import os
import struct
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rootsd.core.history import Head
from rootsd.host.private import (
    NotPrivate,
    ensure_private_folder,
    open_private_file,
    sync,
    sync_path,
    unusable,
)
from rootsd.host.storage.nocow import write_in_place

HEAD_NAME = "head"
SLOT_SPACING = 4096
KEY_SIZE = 16
# magic, count of writes so far, then the content; SHA-256 of all these follows
_SLOT_HEADER = struct.Struct(">8sQ")
_DIGEST_SIZE = 32
_HEAD = struct.Struct(">Q32s")
_SECOND_HEAD = struct.Struct(f">Q32s{KEY_SIZE}s")
_MAGIC = b"rootsd-1"
_SECOND_MAGIC = b"rootsd-2"


class Slots:
    """An open anchor file. `content` is the content written last, or None if there is none."""

    def __init__(self, file: Path, fd: int, magic: bytes, size: int) -> None:
        self._file = file
        self._fd = fd
        self._magic = magic
        self._size = size
        self._count = 0
        self.content: bytes | None = None
        for slot in range(2):
            count, content = self._read(slot)
            if count > self._count:
                self._count, self.content = count, content

    @classmethod
    def open(cls, file: Path, magic: bytes, size: int) -> Self:
        """Open `file` for contents of `size` bytes. Create it if it is missing.

        Raises NotPrivate.
        """
        fd = open_private_file(file)
        try:
            missing = 2 * SLOT_SPACING - os.fstat(fd).st_size
            if missing > 0:
                # Zeros, not a hole: a later write must not need a new block.
                os.pwrite(fd, bytes(missing), 2 * SLOT_SPACING - missing)
                sync(fd)
                sync_path(file.parent)
            return cls(file, fd, magic, size)
        except OSError as error:
            os.close(fd)
            raise unusable(file, error) from error

    def write(self, content: bytes) -> None:
        """Replace the content. It is on the disk when this returns.

        Raises NotPrivate. The content before it stays then, and the next write uses the same slot.
        """
        data = _SLOT_HEADER.pack(self._magic, self._count + 1) + content
        slot = data + hashlib.sha256(data).digest()
        try:
            os.pwrite(self._fd, slot, (self._count + 1) % 2 * SLOT_SPACING)
            sync(self._fd)
        except OSError as error:
            raise unusable(self._file, error) from error
        self._count += 1
        self.content = content

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # `write` has already synced the content
            os.close(self._fd)

    def _read(self, slot: int) -> tuple[int, bytes | None]:
        """Return the count and the content of a slot; count 0 if no write to it was completed."""
        length = _SLOT_HEADER.size + self._size
        data = os.pread(self._fd, length + _DIGEST_SIZE, slot * SLOT_SPACING)
        written, digest = data[:length], data[length:]
        if len(written) < length or hashlib.sha256(written).digest() != digest:
            return 0, None
        magic, count = _SLOT_HEADER.unpack_from(written)
        return (count, written[_SLOT_HEADER.size :]) if magic == self._magic else (0, None)


class Anchor:
    """The anchor beside the database. `head` is None if the file records nothing."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.head = None if slots.content is None else Head(*_HEAD.unpack(slots.content))

    @classmethod
    def open(cls, folder: Path) -> Anchor:
        """Open the anchor in the state folder `folder`. Create it if it is missing.

        Raises NotPrivate.
        """
        return cls(Slots.open(folder / HEAD_NAME, _MAGIC, _HEAD.size))

    def write(self, head: Head) -> None:
        """Record `head`. It is on the disk when this returns. Raises NotPrivate."""
        self._slots.write(_HEAD.pack(head.seq, head.hash))
        self.head = head

    def close(self) -> None:
        """Close the file."""
        self._slots.close()


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of a second anchor: the head, and the key of the database that it belongs to."""

    head: Head
    key: bytes


class SecondAnchor:
    """The anchor outside the state folder. `mark` is None if the file records nothing."""

    def __init__(self, file: Path, slots: Slots) -> None:
        self.file = file
        self._slots = slots
        self.mark: Mark | None = None
        if slots.content is not None:
            seq, digest, key = _SECOND_HEAD.unpack(slots.content)
            self.mark = Mark(Head(seq, digest), key)

    @classmethod
    def open(cls, file: Path) -> SecondAnchor:
        """Open `file`. Create it, and its folder, if it is missing. Raises NotPrivate."""
        ensure_private_folder(file.parent)
        write_in_place(file.parent)
        return cls(file, Slots.open(file, _SECOND_MAGIC, _SECOND_HEAD.size))

    def write(self, mark: Mark) -> None:
        """Record `mark`. It is on the disk when this returns. Raises NotPrivate."""
        self._slots.write(_SECOND_HEAD.pack(mark.head.seq, mark.head.hash, mark.key))
        self.mark = mark

    def close(self) -> None:
        """Close the file."""
        self._slots.close()


class Anchors:
    """Both anchors of one state folder.

    `second` is None if its folder cannot be used; `trouble` is the reason.
    """

    def __init__(
        self, first: Anchor, second: SecondAnchor | None, trouble: NotPrivate | None
    ) -> None:
        self.first = first
        self.second = second
        self.trouble = trouble

    @classmethod
    def open(cls, folder: Path, outside: Path) -> Anchors:
        """Open the anchors of the state folder `folder`. The second one lies in `outside`.

        Raises NotPrivate if the first one cannot be used.
        """
        with ExitStack() as stack:
            first = Anchor.open(folder)
            stack.callback(first.close)
            second, trouble = None, None
            try:
                second = SecondAnchor.open(second_anchor_file(folder, outside))
            except NotPrivate as error:
                trouble = error
            stack.pop_all()
        return cls(first, second, trouble)

    @property
    def mark(self) -> Mark | None:
        """The content of the second anchor, or None if it records nothing."""
        return self.second.mark if self.second else None

    def write(self, head: Head) -> None:
        """Record `head` in both anchors, in the order that this module describes.

        The second anchor keeps its key; it is left alone if it has none yet. Raises NotPrivate.
        """
        self.first.write(head)
        if self.second is not None and self.second.mark is not None:
            self.second.write(Mark(head, self.second.mark.key))

    def close(self) -> None:
        """Close both files."""
        self.first.close()
        if self.second is not None:
            self.second.close()


def second_anchor_file(folder: Path, outside: Path) -> Path:
    """Return the path of the second anchor of the state folder `folder`, in `outside`.

    The name depends on the path of the state folder, since one user may run daemons with several
    state folders. A link to the state folder makes no difference.
    """
    whose = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()
    return outside / f"{HEAD_NAME}-{whose[:16]}"
