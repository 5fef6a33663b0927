"""The mounts on macOS, from a fake getfsstat(2) with the layout of the system header."""

from __future__ import annotations

import ctypes
import struct

from rootsd.disk.mounts import Mount, list_macos_mounts

LOCAL, JOURNALED = 0x1000, 0x800000


# `struct statfs` as sys/mount.h has it, from f_bsize to f_reserved.
STATFS = struct.Struct("=IiQQQQQ2iIIII16s1024s1024sI7I")


def statfs(point: bytes, kind: bytes, flags: int) -> bytes:
    """One of them: some sizes and counts, of user 501 and type 26."""
    source = b"//ann@server/share"
    before = (4096, 1 << 20, *range(1, 6), 7, 26, 501, 26, flags, 0)
    return STATFS.pack(*before, kind, point, source, *range(8))


class Mac:
    """A fake getfsstat(2). The file systems in `late` are mounted after the call that counts."""

    def __init__(self, *mounted: tuple[bytes, bytes, int], late: int = 0) -> None:
        self._mounted = mounted
        self._late = late

    def getfsstat(self, buffer: ctypes.Array[ctypes.c_char] | None) -> int:
        if buffer is None:
            return len(self._mounted) - self._late
        mounted = self._mounted[: len(buffer) // STATFS.size]
        listed = b"".join(statfs(*one) for one in mounted)
        ctypes.memmove(buffer, listed, len(listed))
        return len(mounted)


DISK = (b"/", b"apfs", LOCAL | JOURNALED)
SHARE = (b"/Volumes/share", b"smbfs", 0)


def test_local_and_remote_volumes_are_distinguished() -> None:
    assert list_macos_mounts(Mac(DISK, SHARE).getfsstat) == (
        Mount(b"/", b"apfs"),
        Mount(b"/Volumes/share", b"smbfs", local=False),
    )


def test_a_path_on_the_data_volume_is_written_from_the_root() -> None:
    data = (b"/System/Volumes/Data", b"apfs", LOCAL)
    home = (b"/System/Volumes/Data/home", b"autofs", 0)
    assert [each.point for each in list_macos_mounts(Mac(data, home).getfsstat)] == [
        data[0],
        b"/home",
    ]


def test_mounts_that_appear_meanwhile_are_listed_if_they_fit() -> None:
    assert len(list_macos_mounts(Mac(*[DISK] * 5, late=2).getfsstat)) == 5
    assert len(list_macos_mounts(Mac(*[DISK] * 50, late=45).getfsstat)) == 9


def test_a_system_without_getfsstat_lists_no_mounts() -> None:
    assert list_macos_mounts(lambda _buffer: -1) == ()
    assert list_macos_mounts(Mac().getfsstat) == ()
