"""List what is mounted on Linux and macOS, and report when it changes.

Knows where file systems are mounted, and which of them depend on another machine or program.

One read of /proc/self/mountinfo replaces a stat of every directory in a walk: a walk that does not
enter mount points cannot leave its file system. Source: proc_pid_mountinfo(5). A system without
that file has no such list (None), and the walk compares device numbers instead.

Tells what macOS has mounted, and from where.

From getfsstat(2), which answers from what the kernel remembers and asks no server. The layout of
`struct statfs` is that of 64-bit inodes, in sys/mount.h of macOS: 2,168 bytes.

Keeps what is mounted at hand, and tells when that changes. Source: proc_pid_mountinfo(5).
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import struct
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rootsd.core.paths import contains

MOUNTINFO = b"/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_POINT_FIELD = 4

# inotify sees only what is done through the mount; a change made elsewhere never arrives. FUSE is
# `fuse.NAME`, or only `fuse` where the file system gives no name, as bindfs does.
_REMOTE_TYPES = frozenset(
    b"nfs nfs4 cifs smb3 smbfs 9p virtiofs afs coda ceph beegfs orangefs lustre gfs2 ocfs2 ncpfs"
    b" fuse vboxsf prl_fs vmhgfs macfuse osxfuse".split()
)


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, and of which type (`ext4`, `fuse.sshfs`); `local` is False
    where the system says that it is another machine's, as only macOS does."""

    point: bytes
    kind: bytes
    local: bool = True

    @property
    def is_automount(self) -> bool:
        """Whether it is only a place where something is mounted once somebody looks."""
        return self.kind == b"autofs"

    @property
    def is_remote(self) -> bool:
        """Whether it depends on another machine or program, which may not answer, and whose
        changes do not reach this machine."""
        if self.is_automount:
            return False
        return not self.local or self.kind in _REMOTE_TYPES or self.kind.startswith(b"fuse.")


def list_mounts() -> tuple[Mount, ...] | None:
    """What this process sees mounted, in the order of mounting; None where that is not told."""
    told = read_mountinfo()
    return None if told is None else parse_mountinfo(told)


def read_mountinfo() -> bytes | None:
    """The same as the system tells it."""
    try:
        with open(MOUNTINFO, "rb") as file:
            return file.read()
    except OSError:
        return None


def parse_mountinfo(told: bytes) -> tuple[Mount, ...]:
    """What `told_mounts` gave, as `mounts` does."""
    return tuple(_parse_mountinfo_line(line) for line in told.splitlines() if b" - " in line)


def _parse_mountinfo_line(line: bytes) -> Mount:
    fields, _, rest = line.partition(b" - ")
    point = _ESCAPE.sub(lambda found: bytes((int(found[1], 8),)), fields.split(b" ")[_POINT_FIELD])
    return Mount(point=point, kind=rest.split(b" ", 1)[0])


def mount_points(found: tuple[Mount, ...] | None) -> frozenset[bytes]:
    """The folders on which something is mounted."""
    return frozenset(mount.point for mount in found or ())


def mount_containing(path: bytes, found: tuple[Mount, ...] | None) -> Mount | None:
    """The file system that holds `path`; None where that is not told."""
    best: Mount | None = None
    for mount in found or ():
        prefix = mount.point.rstrip(b"/") + b"/"
        holds = (path + b"/").startswith(prefix)
        # Of several on one point the last covers the others.
        if holds and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def remote_mount_points(found: Iterable[Mount]) -> tuple[bytes, ...]:
    """Where file systems are mounted that depend on another machine or program."""
    return tuple(mount.point for mount in found if mount.is_remote)


def innermost(points: Iterable[bytes], path: bytes) -> bytes | None:
    """Which of the points holds `path`; the innermost of several."""
    return max((point for point in points if contains(point, path)), key=len, default=None)


# Before f_flags: sizes, counts, f_fsid, f_owner and f_type. Behind it f_fssubtype, f_fstypename,
# f_mntonname and f_mntfromname, and what is reserved.
_STATFS = struct.Struct("=64xI4x16s1024s1024x32x")
_MNT_LOCAL = 0x1000
_MNT_NOWAIT = 2
# Mounted between the question how many there are and the answer.
_SPARE_ENTRIES = 4
# The data of the system's volume group shows below `/` as well, and is named from there.
_DATA_VOLUME = b"/System/Volumes/Data"

# Fills a buffer, or none to be asked how many there are; how many it told of, or less than 0.
GetFsStat = Callable[["ctypes.Array[ctypes.c_char] | None"], int]

if sys.platform == "darwin":
    _libc = ctypes.CDLL(None, use_errno=True)
    # On Intel the plain name is that of the call with 32-bit inodes.
    _getfsstat_call = getattr(_libc, "getfsstat$INODE64", None) or _libc.getfsstat
    _getfsstat_call.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]

    def _getfsstat(buffer: ctypes.Array[ctypes.c_char] | None) -> int:
        return int(_getfsstat_call(buffer, 0 if buffer is None else len(buffer), _MNT_NOWAIT))

else:

    def _getfsstat(buffer: ctypes.Array[ctypes.c_char] | None) -> int:  # noqa: ARG001
        return 0


def list_macos_mounts(getfsstat: GetFsStat = _getfsstat) -> tuple[Mount, ...]:
    """What is mounted, in the order in which the system tells it; nothing where it does not."""
    count = getfsstat(None)
    if count <= 0:
        return ()
    room = count + _SPARE_ENTRIES
    buffer = (ctypes.c_char * (_STATFS.size * room))()
    end = min(getfsstat(buffer), room) * _STATFS.size
    statfs = buffer.raw
    return tuple(_parse_statfs(statfs, at) for at in range(0, end, _STATFS.size))


def _parse_statfs(statfs: bytes, at: int) -> Mount:
    flags, kind, point = _STATFS.unpack_from(statfs, at)
    path = _c_string(point)
    if path.startswith(_DATA_VOLUME + b"/"):
        path = path.removeprefix(_DATA_VOLUME)
    return Mount(path, _c_string(kind), local=bool(flags & _MNT_LOCAL))


def _c_string(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


class MountTable:
    """What is mounted, read again only after it changed: to ask costs a microsecond.

    Where the system does not tell of changes, `now` is None, and `volumes`, which is read each
    time, answers the other questions. May be used by several threads.
    """

    def __init__(self, volumes: Callable[[], tuple[Mount, ...]] = list_macos_mounts) -> None:
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._volumes = volumes
        self._told: bytes | None = None
        self._found: tuple[Mount, ...] | None = None
        try:
            self._fd: int | None = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None
        else:
            self._poll.register(self._fd, select.POLLPRI)
        self._sort(())
        self._read()

    def now(self) -> tuple[Mount, ...] | None:
        """As `mounts`."""
        with self._lock:
            if self._fd is not None and self._poll.poll(0):
                self._read()
            return self._found

    def holding(self, path: bytes) -> Mount | None:
        """As `rootsd.disk.mounts.mount_containing`."""
        return mount_containing(path, self._all())

    def remote(self) -> tuple[bytes, ...]:
        """As `remote_points`."""
        self._all()
        return self._remote

    def automounts(self) -> tuple[bytes, ...]:
        """Where something is mounted once somebody looks, or was then."""
        self._all()
        return self._automounts

    def _all(self) -> tuple[Mount, ...]:
        found = self.now()
        if found is None:
            found = self._volumes()
            self._sort(found)
        return found

    def has_moved(self) -> bool:
        """Whether anything is not where it was told to be, which is known from now on: who renames
        a folder takes the mounts below along, and the system tells nobody."""
        with self._lock:
            return self._fd is not None and self._read()

    def _read(self) -> bool:
        """Whether it differs from what was read before; the same objects stay where not."""
        told = read_mountinfo()
        if told == self._told:
            return False
        self._told = told
        self._found = None if told is None else parse_mountinfo(told)
        self._sort(self._found or ())
        return True

    def _sort(self, found: tuple[Mount, ...]) -> None:
        self._remote = remote_mount_points(found)
        self._automounts = tuple(each.point for each in found if each.is_automount)

    def close(self) -> None:
        """Close what it holds; what was mounted then is told from now on."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None


class MountWatch:
    """Calls `changed` from a thread of its own each time something is mounted or unmounted."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._wake_r, self._wake_w = os.pipe()
        self._thread: threading.Thread | None = None
        try:
            self._fd: int | None = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None

    def start(self) -> None:
        """Begin to watch; does nothing where mounts are not told."""
        if self._fd is None:
            return
        self._thread = threading.Thread(
            target=self._run, args=(self._fd,), name="mounts", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close what it held."""
        os.write(self._wake_w, b"!")
        if self._thread is not None:
            self._thread.join()
        for fd in (self._fd, self._wake_r, self._wake_w):
            if fd is not None:
                os.close(fd)

    def _run(self, fd: int) -> None:
        poll = select.poll()
        # The kernel marks a change by POLLPRI and POLLERR and clears it by being polled.
        poll.register(fd, select.POLLPRI)
        poll.register(self._wake_r, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll()}
            if self._wake_r in ready:
                return
            self._changed()
