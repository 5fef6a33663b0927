"""Decode the records of an inotify instance. This module makes no system calls.

Each record is a `struct inotify_event` and the name of the entry, padded with NULs. One read
returns whole records only. Source: inotify(7), "Reading events from an inotify file descriptor".
The values of the masks are those in <sys/inotify.h>.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

IN_ATTRIB = 0x0000_0004
IN_CLOSE_WRITE = 0x0000_0008
IN_MOVED_FROM = 0x0000_0040
IN_MOVED_TO = 0x0000_0080
IN_CREATE = 0x0000_0100
IN_DELETE = 0x0000_0200
IN_DELETE_SELF = 0x0000_0400
IN_MOVE_SELF = 0x0000_0800
# Only the kernel sets these.
IN_Q_OVERFLOW = 0x0000_4000
IN_IGNORED = 0x0000_8000
IN_ISDIR = 0x4000_0000
# Only inotify_add_watch(2) takes these.
IN_ONLYDIR = 0x0100_0000
IN_DONT_FOLLOW = 0x0200_0000
IN_EXCL_UNLINK = 0x0400_0000
IN_MASK_ADD = 0x2000_0000

# wd, mask, cookie, and the length of the name with its padding.
_HEADER = struct.Struct("=iIII")
# The longest name has 255 bytes and a NUL.
MAX_RECORD_BYTES = _HEADER.size + 256
# The bytes of two records, for a quick search. `_ENDED` lacks the first word of its record, the
# number of the watch. Every record starts at a multiple of the header's size, because the kernel
# pads names. A name cannot contain these bytes at such an offset: after a NUL, it has only NULs.
# Other offsets do not count. For example, the length 16 before a file named b"\x80" looks like the
# end of a watch.
_OVERFLOW = _HEADER.pack(-1, IN_Q_OVERFLOW, 0, 0)
_ENDED = struct.pack("=III", IN_IGNORED, 0, 0)
_WORD = 4


class InotifyRecord(NamedTuple):
    """A change of a watched folder, or of its entry `name`, as the kernel reports it.

    `wd` is the number of the kernel watch, or -1 for an overflow. The two records of a rename have
    the same `cookie`. `name` is empty for the folder itself.
    """

    wd: int
    mask: int
    cookie: int
    name: bytes

    @property
    def is_overflow(self) -> bool:
        """Return whether the queue was full and the kernel dropped later records."""
        return bool(self.mask & IN_Q_OVERFLOW)

    @property
    def is_end(self) -> bool:
        """Return whether the watch ended: it was removed, or its folder deleted or unmounted."""
        return bool(self.mask & IN_IGNORED)

    @property
    def is_folder(self) -> bool:
        """Return whether the entry is a folder."""
        return bool(self.mask & IN_ISDIR)


_TRUNCATED = InotifyRecord(-1, IN_Q_OVERFLOW, 0, b"")


def decode_records(found: bytes) -> Iterator[InotifyRecord]:
    """Yield the records of a buffer, in order.

    A truncated record counts as an overflow, because its change is lost.
    """
    at, end = 0, len(found)
    while at + _HEADER.size <= end:
        wd, mask, cookie, length = _HEADER.unpack_from(found, at)
        start = at + _HEADER.size
        if start + length > end:
            break
        at = start + length
        yield InotifyRecord(wd, mask, cookie, found[start:at].rstrip(b"\0"))
    if at < end:
        yield _TRUNCATED


def drop_before_overflow(found: bytes) -> bytes:
    """Return the buffer without the records before an overflow, apart from the ends of watches.

    After an overflow, discovery checks every folder, so it does not need these records. Decoding
    the 16,384 records of a full queue would take 15 ms.
    """
    overflow = found.rfind(_OVERFLOW)
    if overflow < 0:
        return found
    kept, at = [], found.find(_ENDED, 0, overflow)
    while at >= 0:
        start = at - _WORD
        if start % _HEADER.size == 0:
            kept.append(found[start : start + _HEADER.size])
        at = found.find(_ENDED, at + 1, overflow)
    return b"".join((*kept, found[overflow:]))
