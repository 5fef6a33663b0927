"""Read git's index: the list of the files in a checkout.

Sources: gitformat-index(5), versions 2 to 4. In a SHA-256 repository, ids and the checksum have 32
bytes. This module trusts no size in the file. It does not read an index with very many files; then
rootsd cannot check whether a copy is complete.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from rootsd.disk.reader import OpenFolder

INDEX_CAP = 32 << 20
MAX_INDEX_ENTRIES = 100_000
_MAX_NAME_LENGTH = 4096  # PATH_MAX; compressed names can each be as long as the one before
SHA1_SIZE, SHA256_SIZE = 20, 32

_FILE = b"index"
_SIGNATURE = b"DIRC"
_HEAD = struct.Struct(">4sII")  # signature, version, number of entries
_HEADER = _HEAD.size
_STAT = struct.Struct(">II8x4xII8xI")  # change time, its nanoseconds, inode, mode, size
_STAT_SIZE = _STAT.size
_FIRST_BYTES = 4 << 10
_CHUNK_BYTES = 256 << 10
_EXTENDED = 0x4000
_NAME_LENGTH = 0x0FFF
_SKIP_WORKTREE = 0x4000
_INTENT_TO_ADD = 0x2000
_TYPE_MASK = 0xF000
_SUBMODULE = 0xE000
_REGULAR = 0x8000
_COMPRESSED = 4
_UINT32_MASK = 0xFFFFFFFF
_VERSIONS = (2, 3, _COMPRESSED)
# Most entries of a split index are in a second file, which this module does not read.
_SPLIT = b"link"


class BadIndex(Exception):
    """A file that is not a complete index."""


class IndexEntry(NamedTuple):
    """A file in the checkout. `size` is None unless it is a regular file.

    `changed` is the change time in seconds and nanoseconds. It and `inode` have 32 bits each and
    come from git's last lstat. They are zero if the program that wrote the index did not record
    them.
    """

    name: bytes
    object_id: bytes
    size: int | None
    changed: tuple[int, int]
    inode: int


def read_index_entries(git: OpenFolder, id_size: int) -> list[IndexEntry]:
    """Return the files that must be in the checkout, from the index in the folder `git`.

    This leaves out submodules and files that a sparse checkout excludes. The result is empty for a
    split index and for a very large one. `id_size` is the size of an object id in bytes. Raises
    BadIndex.
    """
    # Check the signature first, so as not to read all of a file that is not an index.
    if git.read(_FILE, len(_SIGNATURE)) != _SIGNATURE:
        raise BadIndex("it is not an index")
    data = git.read(_FILE, INDEX_CAP) or b""
    if len(data) == INDEX_CAP:
        return []
    if len(data) < _HEADER + id_size or not _is_whole(data, id_size):
        raise BadIndex("its checksum does not match")
    version = int.from_bytes(data[4:8], "big")
    if version not in _VERSIONS:
        return []
    count = int.from_bytes(data[8:12], "big")
    if MAX_INDEX_ENTRIES < count <= len(data) // (_STAT_SIZE + id_size):
        return []
    found, end = [], len(data) - id_size
    at, name = _HEADER, b""
    for _ in range(count):
        if at + _STAT_SIZE + id_size + 2 > end:
            raise BadIndex("it counts more entries than it holds")
        entry, at, name = _entry(data, at, id_size, name if version == _COMPRESSED else None)
        if entry is not None:
            found.append(entry)
    return [] if _SPLIT in _extensions(data, at, end) else found


def read_first_entries(git: OpenFolder) -> Iterator[IndexEntry]:
    """Yield the first files in the index, a few dozen at most, without verifying the checksum."""
    data = git.read(_FILE, _FIRST_BYTES) or b""
    if len(data) < _HEADER:
        return
    signature, version, count = _HEAD.unpack_from(data)
    if signature != _SIGNATURE or version not in _VERSIONS:
        return
    id_size = SHA1_SIZE if _fits(data, SHA1_SIZE) else SHA256_SIZE
    at, name = _HEADER, b""
    for _ in range(count):
        if at + _STAT_SIZE + id_size + 2 > len(data):
            return
        try:
            entry, at, name = _entry(data, at, id_size, name if version == _COMPRESSED else None)
        except (BadIndex, IndexError):
            return
        if entry is not None:
            yield entry


def is_recorded_file(entry: IndexEntry, found: os.stat_result) -> bool:
    """Return whether `found`, from lstat(2), is the very file that git recorded, unchanged."""
    seconds, nanoseconds = divmod(found.st_ctime_ns, 10**9)
    # Git can be built without nanoseconds.
    changed = (seconds & _UINT32_MASK, nanoseconds if entry.changed[1] else 0)
    return entry.inode == found.st_ino & _UINT32_MASK and entry.changed == changed


def _fits(data: bytes, id_size: int) -> bool:
    """Return whether the first entry has an id of this size.

    The index does not record the size of ids. With the correct size, the entry's name has the
    length that the entry records.
    """
    start = _HEADER + _STAT_SIZE + id_size
    flags = _uint16(data, start)
    start += 4 if flags & _EXTENDED else 2
    if data[4:8] == bytes((0, 0, 0, _COMPRESSED)):
        start += 1  # the first name has no previous name to share a prefix with
    length = flags & _NAME_LENGTH
    return data.find(b"\0", start) == start + length or length == _NAME_LENGTH


def _is_whole(data: bytes, id_size: int) -> bool:
    trailer = data[-id_size:]
    if trailer == bytes(id_size):
        return True  # index.skipHash
    digest = hashlib.new("sha1" if id_size == SHA1_SIZE else "sha256", usedforsecurity=False)
    content = memoryview(data)[:-id_size]
    for at in range(0, len(content), _CHUNK_BYTES):
        # Hash in chunks, because hashing holds the interpreter lock. Other threads run in between.
        digest.update(content[at : at + _CHUNK_BYTES])
    return digest.digest() == trailer


def _entry(
    data: bytes, at: int, id_size: int, before: bytes | None
) -> tuple[IndexEntry | None, int, bytes]:
    """Return the entry at `at`, the position of the next entry, and the entry's name.

    The entry is None if its file need not be in the checkout. `before` is the name of the previous
    entry if names are compressed, or else None.
    """
    changed, nanoseconds, inode, mode, size = _STAT.unpack_from(data, at)
    ids = at + _STAT_SIZE
    flags = _uint16(data, ids + id_size)
    start, more = ids + id_size + 2, 0
    if flags & _EXTENDED:
        more = _uint16(data, start)
        start += 2
    kept = b""
    if before is not None:
        dropped, start = _varint(data, start)
        kept = before[: len(before) - dropped]
    stop = data.find(b"\0", start)
    if stop < 0:
        raise BadIndex("a name without an end")
    if len(kept) + stop - start > _MAX_NAME_LENGTH:
        raise BadIndex("a name longer than any path")
    name = kept + data[start:stop]
    if name.startswith(b"/") or (b".." in name and b".." in name.split(b"/")):
        raise BadIndex("a name that leads out of the checkout")
    following = stop + 1 if before is not None else at + ((stop - at) // 8 + 1) * 8
    kind = mode & _TYPE_MASK
    if more & (_SKIP_WORKTREE | _INTENT_TO_ADD) or kind == _SUBMODULE:
        return None, following, name
    size_now = size if kind == _REGULAR else None
    entry = IndexEntry(name, data[ids : ids + id_size], size_now, (changed, nanoseconds), inode)
    return entry, following, name


def _uint16(data: bytes, at: int) -> int:
    """Return the number in two bytes."""
    return int.from_bytes(data[at : at + 2], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in the encoding of pack offsets (gitformat-pack(5)), and its end."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        if at >= len(data):
            raise BadIndex("a number without an end")
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _extensions(data: bytes, at: int, end: int) -> Iterator[bytes]:
    while at + 8 <= end:
        yield data[at : at + 4]
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
