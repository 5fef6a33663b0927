"""Tells what macOS has mounted, and from where.

From getfsstat(2), which answers from what the kernel remembers and asks no server. The layout of
`struct statfs` is that of 64-bit inodes, in sys/mount.h of macOS: 2,168 bytes.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable

from rootsd.host.disk.mounts import Mount

# Before f_flags: sizes, counts, f_fsid, f_owner and f_type. Behind it f_fssubtype, f_fstypename,
# f_mntonname and f_mntfromname, and what is reserved.
_STATFS = struct.Struct("=64xI4x16s1024s1024x32x")
_MNT_LOCAL = 0x1000
_MNT_NOWAIT = 2
# Mounted between the question how many there are and the answer.
_SPARE = 4
# The data of the system's volume group shows below `/` as well, and is named from there.
_DATA = b"/System/Volumes/Data"

# Fills a buffer, or none to be asked how many there are; how many it told of, or less than 0.
GetFsStat = Callable[["ctypes.Array[ctypes.c_char] | None"], int]

if sys.platform == "darwin":
    _libc = ctypes.CDLL(None, use_errno=True)
    # On Intel the plain name is that of the call with 32-bit inodes.
    _call = getattr(_libc, "getfsstat$INODE64", None) or _libc.getfsstat
    _call.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]

    def _getfsstat(buffer: ctypes.Array[ctypes.c_char] | None) -> int:
        return int(_call(buffer, 0 if buffer is None else len(buffer), _MNT_NOWAIT))

else:

    def _getfsstat(buffer: ctypes.Array[ctypes.c_char] | None) -> int:  # noqa: ARG001
        return 0


def volumes(getfsstat: GetFsStat = _getfsstat) -> tuple[Mount, ...]:
    """What is mounted, in the order in which the system tells it; nothing where it does not."""
    count = getfsstat(None)
    if count <= 0:
        return ()
    room = count + _SPARE
    buffer = (ctypes.c_char * (_STATFS.size * room))()
    end = min(getfsstat(buffer), room) * _STATFS.size
    statfs = buffer.raw
    return tuple(_volume(statfs, at) for at in range(0, end, _STATFS.size))


def _volume(statfs: bytes, at: int) -> Mount:
    flags, kind, point = _STATFS.unpack_from(statfs, at)
    path = _text(point)
    if path.startswith(_DATA + b"/"):
        path = path.removeprefix(_DATA)
    return Mount(path, _text(kind), local=bool(flags & _MNT_LOCAL))


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]
