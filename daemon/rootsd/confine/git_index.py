"""Read the gitlinks in an index of git: the paths at which another repository belongs.

This runs no git, because git runs what the settings of the repository name. Source:
gitformat-index(5), versions 2 to 4, with SHA-1 and SHA-256.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MAGIC = b"DIRC"
_GITLINK = 0o160000
_GITLINK_BYTES = _GITLINK.to_bytes(4, "big")
_MODE_AT, _HASH_AT = 24, 40
_HASH_SIZES = (20, 32)
_EXTENDED, _COMPRESSED = 0x4000, 4
_HEADER = struct.Struct(">4sII")


class DamagedIndex(ValueError):
    """The data is no index, or it is damaged."""


def read_gitlinks(data: bytes) -> list[bytes]:
    """Return the paths of the gitlinks in an index. Raises DamagedIndex."""
    if _GITLINK_BYTES not in data:
        return []  # to read all entries takes half a microsecond each
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise DamagedIndex("this is no index")
    for size in _HASH_SIZES:
        try:
            return list(_gitlinks(data, size))
        except (DamagedIndex, ValueError, struct.error, IndexError):
            continue
    raise DamagedIndex("the entries cannot be read")


def _gitlinks(data: bytes, hash_size: int) -> Iterator[bytes]:
    _, version, count = _HEADER.unpack_from(data)
    at, path = _HEADER.size, b""
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", data, at + _MODE_AT)
        (flags,) = struct.unpack_from(">H", data, at + _HASH_AT + hash_size)
        name = at + _HASH_AT + hash_size + (4 if flags & _EXTENDED else 2)
        if version == _COMPRESSED:
            dropped, name = _offset(data, name)
            end = data.index(b"\0", name)
            path = path[: len(path) - dropped] + data[name:end]
            at = end + 1
        else:
            end = data.index(b"\0", name)
            path = data[name:end]
            at += (end - at) // 8 * 8 + 8
        if not path or mode & 0o170000 not in (0o100000, 0o120000, 0o040000, _GITLINK):
            raise DamagedIndex("the entries have another size")
        if mode == _GITLINK:
            yield path


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in the encoding of offsets in packs, and where it ends."""
    byte = data[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1
