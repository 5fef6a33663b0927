"""Detect a restored or copied database by two anchors outside it and a binding inside it.

The problem. A database that was restored from an older copy is undamaged, but it is wrong: it
lacks the latest decisions, and one of them may have taken an approval back. So rootsd must detect
a restore and then take every approval back. This module writes the records that this needs.
`rootsd.state.store.opening` compares them at each start.

Anchors. An anchor is a small file that records the head of the decision chain, which is the number
and hash of the last event. A database that was restored from an older copy does not contain that
head. There are two anchors, because each detects a different restore:

* The file `head` lies beside the database. It detects an older database in an otherwise current
  state folder.
* The second anchor lies outside the state folder (`places.daemon_folders`), so a restore of that
  folder does not restore it. It detects an older state folder. It also records the key of the one
  database that it belongs to, and the change time of the first anchor.

Change time. A backup that is copied over the existing files restores both anchors and keeps their
inodes. But the copy changes the file, and the system notes when; no program can set that change
time (ctime) itself. So the second anchor records the change time of the first one. If it differs,
another program has written to the first anchor, or changed its mode, its owner, or its links. The
history is then not trusted. To undo a decision, a copy must replace the database and both anchors,
because the chain of an older database does not contain a newer head.

Order of writes. A decision is acknowledged after these steps, each of which is on the disk before
the next begins:

1. The transaction with the decision is committed.
2. The head is written to the first anchor.
3. The head is written to the second anchor.

After a crash between these steps, the chain is longer than an anchor says. That is normal, and the
next start writes both anchors before anything else can be decided. After a crash between steps 2
and 3, the first anchor has had exactly one write more than the second one knows. Its time of
modification then equals its change time, because one write set both. A program that restores files
sets the time of modification back.

The kernel sets both times before it writes the content, and leaves the content out if a signal
kills the process at that moment. After such a kill, or a power cut during step 2, the first anchor
has new times and the old content. It does not record the event of step 1, so the chain is longer
than the anchor says. If the chain is not longer, another program changed the anchor. One restore
is not noticed: that of a copy which was made between steps 1 and 2, by a program that copies over
the existing files and does not set their times.

An anchor never records an event that the chain lacks, so no other crash looks like a restore.
After an acknowledgment, both anchors record the decision, so an older state folder, which lacks
it, is always detected.

File format. An anchor file has two slots, each in its own block. Writes alternate between
them, so a torn write leaves the other slot intact. The file never grows and is never renamed, so a
full disk does not stop a write.

Binding. The database records two things about itself, in one row:

* The identity of its own file: inode number, birth time and file handle. A copy is another file,
  so a database that was restored from a copy differs from its own record. This detects a restore
  even if the second anchor was restored, too, as when a whole home folder is restored. A restore
  of a whole file system, such as a snapshot of a virtual machine, also restores the identity. No
  check in this program can detect that.
* A random key, which the second anchor also records. So an anchor never confirms the history of
  another database, even if both are empty.

A new store has no binding, and neither has one whose second anchor could never be written. Such a
store gets one without a lapse:

1. The second anchor is written, with a new key and the head of the chain.
2. The binding is committed to the database.

After a crash between these steps, the anchor records exactly the head of a database without a
binding, and the next start completes the steps. After step 2, the database knows that it has a
second anchor. If that anchor is missing later, it was removed, or this state folder has replaced
another one.

If the history is not trusted, one transaction takes every approval back and replaces the binding,
with a new key. Then the anchors are written. After a crash in between, the second anchor does not
have the new key, so the next start does the same again. The state folder that was replaced has the
old key. So it is not trusted either if somebody puts it back.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from rootsd.core.history import ChainHead
from rootsd.core.record import BadRecord
from rootsd.disk.inode import file_handle, read_birth_time_ns
from rootsd.files.private_files import (
    NotPrivate,
    ensure_private_folder,
    open_private_file,
    sync,
    sync_path,
    unusable_error,
)
from rootsd.state.store.database import Database
from rootsd.state.store.nocow import write_in_place

HEAD_NAME = "head"
SLOT_SPACING = 4096
KEY_SIZE = 16
# A slot holds the magic, the number of writes so far, the content, and the SHA-256 of all of them.
_SLOT_HEADER = struct.Struct(">8sQ")
_DIGEST_SIZE = 32
_FIRST_CONTENT = struct.Struct(">Q32s")
# The head, the key, and the writes and the change time of the first anchor.
_SECOND_CONTENT = struct.Struct(f">Q32s{KEY_SIZE}sQq")
_FIRST_MAGIC = b"rootsd-1"
_SECOND_MAGIC = b"rootsd-3"


class AnchorStamp(Struct, frozen=True):
    """The state of an anchor file: the number of writes so far, and the change time in ns."""

    writes: int
    changed_ns: int


class AnchorFile:
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
                # The name first: the next start takes it from the size that the name is on the
                # disk, also if this process is killed here.
                sync_path(file.parent)
                # Write zeros instead of leaving a hole, so that a later write needs no new block.
                os.pwrite(fd, bytes(missing), 2 * SLOT_SPACING - missing)
                sync(fd)
            return cls(file, fd, magic, size)
        except OSError as error:
            os.close(fd)
            raise unusable_error(file, error) from error

    def write(self, content: bytes) -> None:
        """Replace the content. It is on the disk when this returns.

        Raises NotPrivate. The old content then stays, and the next write uses the same slot.
        """
        data = _SLOT_HEADER.pack(self._magic, self._count + 1) + content
        slot = data + hashlib.sha256(data).digest()
        try:
            os.pwrite(self._fd, slot, (self._count + 1) % 2 * SLOT_SPACING)
            sync(self._fd)
        except OSError as error:
            raise unusable_error(self._file, error) from error
        self._count += 1
        self.content = content

    def stamp(self) -> AnchorStamp:
        """Return the state of the file now. Raises NotPrivate."""
        return AnchorStamp(self._count, self._times()[0])

    def has_old_content(self) -> bool:
        """Return whether something else than a write of content changed the file last.

        Raises NotPrivate.
        """
        changed, modified = self._times()
        return changed != modified

    def _times(self) -> tuple[int, int]:
        try:
            return change_times_ns(self._fd)
        except OSError as error:
            raise unusable_error(self._file, error) from error

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # `write` has already synced the content
            os.close(self._fd)

    def _read(self, slot: int) -> tuple[int, bytes | None]:
        """Return the count and the content of a slot. The count is 0 without a complete write."""
        length = _SLOT_HEADER.size + self._size
        data = os.pread(self._fd, length + _DIGEST_SIZE, slot * SLOT_SPACING)
        written, digest = data[:length], data[length:]
        if len(written) < length or hashlib.sha256(written).digest() != digest:
            return 0, None
        magic, count = _SLOT_HEADER.unpack_from(written)
        return (count, written[_SLOT_HEADER.size :]) if magic == self._magic else (0, None)


def change_times_ns(fd: int) -> tuple[int, int]:
    """Return the change time and the time of modification of an open file, in ns. See inode(7)."""
    found = os.fstat(fd)
    return found.st_ctime_ns, found.st_mtime_ns


class FirstAnchor:
    """The anchor beside the database. `head` is None if the file has no content."""

    def __init__(self, slots: AnchorFile) -> None:
        self._slots = slots
        self.head = (
            None if slots.content is None else ChainHead(*_FIRST_CONTENT.unpack(slots.content))
        )

    @classmethod
    def open(cls, folder: Path) -> FirstAnchor:
        """Open the anchor in the state folder `folder`. Create it if it is missing.

        Raises NotPrivate.
        """
        return cls(AnchorFile.open(folder / HEAD_NAME, _FIRST_MAGIC, _FIRST_CONTENT.size))

    def write(self, head: ChainHead) -> None:
        """Record `head`. It is on the disk when this returns. Raises NotPrivate."""
        self._slots.write(_FIRST_CONTENT.pack(head.seq, head.hash))
        self.head = head

    def stamp(self) -> AnchorStamp:
        """Return what the second anchor records of this file. Raises NotPrivate."""
        return self._slots.stamp()

    def was_overwritten(self, recorded: AnchorStamp, chain: ChainHead) -> bool:
        """Return whether another program changed this file after rootsd `recorded` its state.

        `chain` is the head of the chain in the database. Raises NotPrivate.
        """
        found = self.stamp()
        if found == recorded:
            return False
        is_unrecorded = found.writes == recorded.writes + 1  # a crash after step 2
        is_unwritten = found.writes == recorded.writes and self.head != chain  # a kill in step 2
        return not (is_unrecorded or is_unwritten) or self._slots.has_old_content()

    def close(self) -> None:
        """Close the file."""
        self._slots.close()


class AnchorRecord(Struct, frozen=True):
    """The content of a second anchor.

    It is the head, the key of the database that it belongs to, and the state of the first anchor.
    """

    head: ChainHead
    key: bytes
    first: AnchorStamp


class SecondAnchor:
    """The anchor outside the state folder. `record` is None if the file has no content."""

    def __init__(self, file: Path, slots: AnchorFile) -> None:
        self.file = file
        self._slots = slots
        self.record: AnchorRecord | None = None
        if slots.content is not None:
            seq, digest, key, *first = _SECOND_CONTENT.unpack(slots.content)
            self.record = AnchorRecord(ChainHead(seq, digest), key, AnchorStamp(*first))

    @classmethod
    def open(cls, file: Path) -> SecondAnchor:
        """Open `file`. Create it, and its folder, if it is missing. Raises NotPrivate."""
        ensure_private_folder(file.parent)
        write_in_place(file.parent)
        return cls(file, AnchorFile.open(file, _SECOND_MAGIC, _SECOND_CONTENT.size))

    def write(self, record: AnchorRecord) -> None:
        """Record `record`. It is on the disk when this returns. Raises NotPrivate."""
        first = record.first
        content = (record.head.seq, record.head.hash, record.key, first.writes, first.changed_ns)
        self._slots.write(_SECOND_CONTENT.pack(*content))
        self.record = record

    def close(self) -> None:
        """Close the file."""
        self._slots.close()


class AnchorPair:
    """Both anchors of one state folder.

    `second` is None if its folder cannot be used; `trouble` is the reason.
    """

    def __init__(
        self, first: FirstAnchor, second: SecondAnchor | None, trouble: NotPrivate | None
    ) -> None:
        self.first = first
        self.second = second
        self.trouble = trouble

    @classmethod
    def open(cls, folder: Path, outside: Path) -> AnchorPair:
        """Open the anchors of the state folder `folder`. The second one lies in `outside`.

        Raises NotPrivate if the first one cannot be used.
        """
        with ExitStack() as stack:
            first = FirstAnchor.open(folder)
            stack.callback(first.close)
            second, trouble = None, None
            try:
                second = SecondAnchor.open(second_anchor_file(folder, outside))
            except NotPrivate as error:
                trouble = error
            stack.pop_all()
        return cls(first, second, trouble)

    @property
    def record(self) -> AnchorRecord | None:
        """The content of the second anchor, or None if there is none."""
        return self.second.record if self.second else None

    def write(self, head: ChainHead) -> None:
        """Record `head` in both anchors, in the order that this module describes.

        The second anchor keeps its key. Without a key, it is not written. Raises NotPrivate.
        """
        if self.first.head != head:  # else a crash after step 2 would leave it two writes ahead
            self.first.write(head)
        if self.second is not None and self.second.record is not None:
            self.write_second(head, self.second.record.key)

    def write_second(self, head: ChainHead, key: bytes) -> None:
        """Record `head` and `key` in the second anchor, if there is one. Raises NotPrivate."""
        if self.second is not None:
            self.second.write(AnchorRecord(head, key, self.first.stamp()))

    def hold(self, head: ChainHead) -> bool:
        """Return whether both anchors record `head` and each other. Raises NotPrivate."""
        record = self.record
        return self.first.head == head and (
            record is None or (record.head, record.first) == (head, self.first.stamp())
        )

    def close(self) -> None:
        """Close both files."""
        self.first.close()
        if self.second is not None:
            self.second.close()


def second_anchor_file(folder: Path, outside: Path) -> Path:
    """Return the path of the second anchor of the state folder `folder`, in `outside`.

    The name depends on the path of the state folder, because one user may run daemons with several
    state folders. Links in that path are resolved.
    """
    digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()
    return outside / f"{HEAD_NAME}-{digest[:16]}"


_INODE_SIZE = 8


class FileIdentity(Struct, frozen=True):
    """The values that distinguish a file from a copy. `handle` is None if there is none.

    It is no `Identity` of a folder, from which the facts are left out that do not last on a file
    system: here, a file that cannot be compared is another one.
    """

    inode: int
    born_ns: int
    handle: bytes | None

    def is_same(self, other: FileIdentity | None) -> bool:
        """Return whether both are the same file.

        If `other` is None, it could not be read, and counts as another file. Handles are compared
        only if both have one, because a newer kernel may add them.
        """
        if other is None or (self.inode, self.born_ns) != (other.inode, other.born_ns):
            return False
        return self.handle is None or other.handle is None or self.handle == other.handle


class DatabaseBinding(Struct, frozen=True):
    """The binding of one database.

    `file` is None on a file system without birth times. `cause` says why the approvals lapsed when
    this binding was made, and is empty if they did not.
    """

    key: bytes
    file: FileIdentity | None
    cause: str = ""


def new_key() -> bytes:
    """Return a key that no other database has."""
    return secrets.token_bytes(KEY_SIZE)


def identify(file: Path) -> FileIdentity | None:
    """Return the identity of the database `file`, or None if its file system keeps no birth time.

    Closing a descriptor of the database would drop SQLite's lock (fcntl(2)). So this uses O_PATH
    or lstat. Raises NotPrivate if the file cannot be examined.
    """
    try:
        if sys.platform == "linux":
            fd = os.open(file, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                return _file_identity(fd, os.fstat(fd))
            finally:
                os.close(fd)
        return _file_identity(-1, file.lstat())
    except OSError as error:
        raise unusable_error(file, error) from error


def _file_identity(fd: int, found: os.stat_result) -> FileIdentity | None:
    born = read_birth_time_ns(fd, found)
    return None if born is None else FileIdentity(found.st_ino, born, file_handle(fd))


def read_binding(db: Database) -> DatabaseBinding | None:
    """Return the binding that `db` records, or None if it has none. Raises BadRecord."""
    row = db.execute("SELECT key, inode, born, handle, cause FROM binding").fetchone()
    match row:
        case None:
            return None
        case (bytes(key), None, None, None, str(cause)):
            return DatabaseBinding(key, None, cause)
        case (bytes(key), bytes(inode), int(born), bytes() | None as handle, str(cause)):
            return DatabaseBinding(key, FileIdentity(int.from_bytes(inode), born, handle), cause)
        case _:
            raise BadRecord("the binding holds a value of a wrong type")


def write_binding(db: Database, binding: DatabaseBinding) -> None:
    """Replace the binding of `db`, as part of the caller's transaction."""
    file = binding.file
    row: tuple[bytes | int | None, ...] = (None, None, None)
    if file is not None:
        # An inode number can be larger than a number in SQLite.
        row = (file.inode.to_bytes(_INODE_SIZE), file.born_ns, file.handle)
    db.execute("DELETE FROM binding")
    db.execute(
        "INSERT INTO binding(key, inode, born, handle, cause) VALUES(?,?,?,?,?)",
        (binding.key, *row, binding.cause),
    )
