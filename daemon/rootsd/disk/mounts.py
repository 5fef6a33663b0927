"""List what is mounted on Linux and macOS, and report when it changes.

On Linux, the mounts are in /proc/self/mountinfo. A walk that enters no mount point cannot leave
its file system, so the walk need not stat each directory. On a system without that file, the list
of mounts is None, and the walk compares device numbers. Source: proc_pid_mountinfo(5).

On macOS, getfsstat(2) lists the mounts. It returns what the kernel has in memory, and contacts no
server. `struct statfs` has the layout for 64-bit inodes in sys/mount.h of macOS, 2,168 bytes long.
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
from functools import cache

from msgspec import Struct

from rootsd.core.paths import ancestors, contains

MOUNTINFO = b"/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_NUMBER_FIELD, _POINT_FIELD = 0, 4

# inotify reports only changes made on this machine, not those made on another one. The type of a
# FUSE file system is `fuse.NAME`, or `fuse` if it has no name, as with bindfs.
_REMOTE_TYPES = frozenset(
    b"nfs nfs4 cifs smb3 smbfs 9p virtiofs afs coda ceph beegfs orangefs lustre gfs2 ocfs2 ncpfs"
    b" fuse vboxsf prl_fs vmhgfs macfuse osxfuse".split()
)
# The servers of these file systems identify folders for good. So the same source is the same file
# system, even after it was mounted again.
_LASTING_TYPES = frozenset(
    b"nfs nfs4 cifs smb3 afs coda ceph lustre beegfs orangefs gfs2 ocfs2".split()
)


_KERNEL_TYPES = frozenset(
    b"proc sysfs devtmpfs devpts cgroup cgroup2 securityfs debugfs tracefs bpf pstore configfs"
    b" mqueue hugetlbfs fusectl binfmt_misc efivarfs nsfs selinuxfs".split()
)


class Mount(Struct, frozen=True):
    """A mounted file system: its mount point and its type, such as `ext4` or `fuse.sshfs`.

    * `local`: False for a file system of another machine. Only macOS reports that.
    * `source`: what was mounted, such as `/dev/sda1` or `server:/export`, and `options`: those of
      the file system. Only Linux reports them.
    * `number`: the number of the mount on Linux. A later mount may get it again.
    """

    point: bytes
    kind: bytes
    local: bool = True
    source: bytes = b""
    options: bytes = b""
    number: int = 0

    @property
    def is_disk(self) -> bool:
        """Whether it may hold files of a person, and not only what the kernel shows there."""
        return self.kind not in _KERNEL_TYPES and not self.is_automount

    @property
    def is_automount(self) -> bool:
        """Whether the system mounts a file system here at the first access (autofs)."""
        return self.kind == b"autofs"

    @property
    def is_remote(self) -> bool:
        """Whether the file system depends on another machine or program.

        Such a file system may hang, and this machine gets no events for changes made elsewhere.
        """
        if self.is_automount:
            return False
        return not self.local or self.kind in _REMOTE_TYPES or self.kind.startswith(b"fuse.")

    @property
    def is_foreign(self) -> bool:
        """Return whether another machine or program decides what the file system contains."""
        return self.is_remote or self.kind == b"fuseblk"

    @property
    def lasts(self) -> bool:
        """Return whether the same source is the same file system after it was mounted again."""
        return self.kind in _LASTING_TYPES


def list_mounts() -> tuple[Mount, ...] | None:
    """Return the mounts that this process sees, in the order of mounting, or None if unknown."""
    content = read_mountinfo()
    return None if content is None else parse_mountinfo(content)


def read_mountinfo() -> bytes | None:
    """Return the content of mountinfo, or None if it cannot be read."""
    try:
        with open(MOUNTINFO, "rb") as file:
            return file.read()
    except OSError:
        return None


def parse_mountinfo(content: bytes) -> tuple[Mount, ...]:
    """Return the mounts that the content of mountinfo lists."""
    return tuple(_parse_mountinfo_line(line) for line in content.splitlines() if b" - " in line)


def _parse_mountinfo_line(line: bytes) -> Mount:
    before, _, rest = line.partition(b" - ")
    fields, (kind, *more) = before.split(b" "), rest.split(b" ", 2)
    source, options = (*more, b"", b"")[:2]
    return Mount(
        point=_unescaped(fields[_POINT_FIELD]),
        kind=kind,
        source=_unescaped(source),
        options=_unescaped(options),
        number=int(fields[_NUMBER_FIELD]),
    )


def _unescaped(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes((int(found[1], 8),)), field)


def mount_of(fd: int) -> Mount | None:
    """Return the mount that has the file open at `fd`, or None if the system does not tell."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            number = int(file.read().partition(b"mnt_id:")[2].split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return None
    return next((each for each in process_mounts().now() or () if each.number == number), None)


def mount_points(found: tuple[Mount, ...] | None) -> frozenset[bytes]:
    """Return the folders on which something is mounted."""
    return frozenset(mount.point for mount in found or ())


def mount_containing(path: bytes, found: tuple[Mount, ...] | None) -> Mount | None:
    """Return the mount that holds `path`, or None if the mounts are unknown."""
    best: Mount | None = None
    for mount in found or ():
        prefix = mount.point.rstrip(b"/") + b"/"
        holds = (path + b"/").startswith(prefix)
        # If several mounts share one mount point, the last one hides the others.
        if holds and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def remote_mount_points(found: Iterable[Mount]) -> tuple[bytes, ...]:
    """Return the mount points of file systems that depend on another machine or program."""
    return tuple(mount.point for mount in found if mount.is_remote)


def innermost(points: Iterable[bytes], path: bytes) -> bytes | None:
    """Return the innermost of the points that contain `path`, or None."""
    return max((point for point in points if contains(point, path)), key=len, default=None)


# The 64 bytes before f_flags: sizes, counts, f_fsid, f_owner, and f_type. Then f_flags,
# f_fssubtype, f_fstypename, f_mntonname, f_mntfromname, and reserved space.
_STATFS = struct.Struct("=64xI4x16s1024s1024x32x")
_MNT_LOCAL = 0x1000
_MNT_NOWAIT = 2
# Room for mounts that appear between the call that counts and the call that lists.
_SPARE_ENTRIES = 4
# The folders of this volume also appear below `/`, and that is how paths name them.
_DATA_VOLUME = b"/System/Volumes/Data"

# Fills a buffer and returns the number of mounts, or a negative number for an error. With None, it
# only counts.
GetFsStat = Callable[["ctypes.Array[ctypes.c_char] | None"], int]

if sys.platform == "darwin":
    _libc = ctypes.CDLL(None, use_errno=True)
    # On Intel, the plain name is the call with 32-bit inodes.
    _getfsstat_call = getattr(_libc, "getfsstat$INODE64", None) or _libc.getfsstat
    _getfsstat_call.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]

    def _getfsstat(buffer: ctypes.Array[ctypes.c_char] | None) -> int:
        return int(_getfsstat_call(buffer, 0 if buffer is None else len(buffer), _MNT_NOWAIT))

else:

    def _getfsstat(buffer: ctypes.Array[ctypes.c_char] | None) -> int:  # noqa: ARG001
        return 0


def list_macos_mounts(getfsstat: GetFsStat = _getfsstat) -> tuple[Mount, ...]:
    """Return the mounts in the system's order; none on a system without getfsstat(2)."""
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
    """The current mounts. They are read again only after a change, so a query takes a microsecond.

    On a system that does not report changes, `now` returns None, and the other queries call
    `volumes` each time. Several threads may use the table.
    """

    def __init__(self, volumes: Callable[[], tuple[Mount, ...]] = list_macos_mounts) -> None:
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._volumes = volumes
        self._content: bytes | None = None
        self._found: tuple[Mount, ...] | None = None
        self._changes = 0
        # The mount points and the folders above them.
        self._leading: frozenset[bytes] = frozenset()
        try:
            self._fd: int | None = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None
        else:
            self._poll.register(self._fd, select.POLLPRI)
        self._sort(())
        self._read()

    def now(self) -> tuple[Mount, ...] | None:
        """Return the mounts as `list_mounts` does."""
        with self._lock:
            if self._fd is not None and self._poll.poll(0):
                self._changes += 1
                self._read()
            return self._found

    def changes(self) -> int:
        """Return the number of changes that the system reported; 0 if it reports none.

        A mount in the place of another one may look the same in the table.
        """
        self.now()
        return self._changes

    def holding(self, path: bytes) -> Mount | None:
        """Return the mount that holds `path`, or None if the mounts are unknown."""
        return mount_containing(path, self._all())

    def remote(self) -> tuple[bytes, ...]:
        """Return the mount points as `remote_mount_points` does."""
        self._all()
        return self._remote

    def everything(self) -> tuple[Mount, ...]:
        """Return all mounts, also on a system that reports no changes."""
        return self._all()

    def automounts(self) -> tuple[bytes, ...]:
        """Return the mount points where the system mounts a file system at the first access."""
        self._all()
        return self._automounts

    def foreign(self) -> tuple[Mount, ...]:
        """Return the mounts whose files are another machine's or program's.

        The result is empty on a system that does not report changes.
        """
        return () if self.now() is None else self._foreign

    def _all(self) -> tuple[Mount, ...]:
        found = self.now()
        if found is None:
            found = self._volumes()
            self._sort(found)
        return found

    def are_below(self, paths: Iterable[bytes]) -> bool:
        """Return whether anything was mounted at or below one of `paths` at the last reading.

        The result is False on a system that does not report changes.
        """
        return not self._leading.isdisjoint(paths)

    def has_moved(self) -> bool:
        """Read the mounts again and return whether any of them differs.

        The system does not report the renaming of a folder, which moves the mounts below it.
        """
        with self._lock:
            return self._fd is not None and self._read()

    def _read(self) -> bool:
        """Read the mounts and return whether they differ. Equal mounts keep their objects."""
        content = read_mountinfo()
        if content == self._content:
            return False
        self._content = content
        self._found = None if content is None else parse_mountinfo(content)
        points = mount_points(self._found)
        self._leading = points.union(*map(ancestors, points))
        self._sort(self._found or ())
        return True

    def _sort(self, found: tuple[Mount, ...]) -> None:
        self._remote = remote_mount_points(found)
        self._foreign = tuple(each for each in found if each.is_foreign)
        self._automounts = tuple(each.point for each in found if each.is_automount)


@cache
def process_mounts() -> MountTable:
    """Return the table of this process."""
    return MountTable()


class MountWatch:
    """Calls `changed` from its own thread each time something is mounted or unmounted."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._wake_r, self._wake_w = os.pipe()
        self._thread: threading.Thread | None = None
        try:
            self._fd: int | None = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None

    def start(self) -> None:
        """Start the thread, unless the system does not report mounts."""
        if self._fd is None:
            return
        self._thread = threading.Thread(
            target=self._run, args=(self._fd,), name="mounts", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the descriptors."""
        os.write(self._wake_w, b"!")
        if self._thread is not None:
            self._thread.join()
        for fd in (self._fd, self._wake_r, self._wake_w):
            if fd is not None:
                os.close(fd)

    def _run(self, fd: int) -> None:
        poll = select.poll()
        # The kernel reports a change with POLLPRI and POLLERR, and poll(2) clears both.
        poll.register(fd, select.POLLPRI)
        poll.register(self._wake_r, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll()}
            if self._wake_r in ready:
                return
            self._changed()
