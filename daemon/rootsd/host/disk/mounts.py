"""Knows where file systems are mounted, and tells when that changes.

One read of /proc/self/mountinfo replaces a stat of every directory in a walk: a walk that does not
enter mount points cannot leave its file system. Source: proc_pid_mountinfo(5). A system without
that file has no list (None), and the walk compares device numbers instead.
"""

from __future__ import annotations

import os
import re
import select
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rootsd.core.paths import contains

_MOUNTINFO = b"/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_POINT_FIELD = 4

# inotify sees only what is done through the mount; a change made elsewhere never arrives. FUSE is
# `fuse.NAME`, or only `fuse` where the file system gives no name, as bindfs does.
_UNWATCHABLE = frozenset(
    b"nfs nfs4 cifs smb3 smbfs 9p virtiofs afs coda ceph beegfs orangefs lustre gfs2 ocfs2 ncpfs"
    b" fuse vboxsf prl_fs vmhgfs".split()
)


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, and of which type (`ext4`, `fuse.sshfs`)."""

    point: bytes
    kind: bytes

    @property
    def is_automount(self) -> bool:
        """Whether it is only a place where something is mounted once somebody looks."""
        return self.kind == b"autofs"


def mounts() -> tuple[Mount, ...] | None:
    """What this process sees mounted, in the order of mounting; None where that is not told."""
    try:
        with open(_MOUNTINFO, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    return tuple(_parse(line) for line in lines if b" - " in line)


def _parse(line: bytes) -> Mount:
    fields, _, rest = line.partition(b" - ")
    point = _ESCAPE.sub(lambda found: bytes((int(found[1], 8),)), fields.split(b" ")[_POINT_FIELD])
    return Mount(point=point, kind=rest.split(b" ", 1)[0])


def mount_points(found: tuple[Mount, ...] | None) -> frozenset[bytes]:
    """The folders on which something is mounted."""
    return frozenset(mount.point for mount in found or ())


def holding(path: bytes, found: tuple[Mount, ...] | None) -> Mount | None:
    """The file system that holds `path`; None where that is not told."""
    best: Mount | None = None
    for mount in found or ():
        prefix = mount.point.rstrip(b"/") + b"/"
        holds = (path + b"/").startswith(prefix)
        # Of several on one point the last covers the others.
        if holds and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def unwatchable_kind(path: bytes, found: tuple[Mount, ...] | None) -> str | None:
    """The type of the file system below `path`, if its changes do not reach this machine."""
    mount = holding(path, found)
    return os.fsdecode(mount.kind) if mount is not None and _is_remote(mount) else None


def remote_points(found: tuple[Mount, ...] | None) -> tuple[bytes, ...]:
    """Where file systems are mounted that depend on another machine or program, which may not
    answer."""
    return tuple(mount.point for mount in found or () if _is_remote(mount))


def _is_remote(mount: Mount) -> bool:
    return mount.kind in _UNWATCHABLE or mount.kind.startswith(b"fuse.")


def innermost(points: Iterable[bytes], path: bytes) -> bytes | None:
    """Which of the points holds `path`; the innermost of several."""
    return max((point for point in points if contains(point, path)), key=len, default=None)


class MountTable:
    """What is mounted, read again only after it changed: to ask costs a microsecond.

    May be used by several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poll = select.poll()
        try:
            self._fd: int | None = os.open(_MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None
        else:
            self._poll.register(self._fd, select.POLLPRI)
        self._read()

    def now(self) -> tuple[Mount, ...] | None:
        """As `mounts`."""
        with self._lock:
            if self._fd is not None and self._poll.poll(0):
                self._read()
            return self._found

    def remote(self) -> tuple[bytes, ...]:
        """As `remote_points`."""
        self.now()
        return self._remote

    def automounts(self) -> tuple[bytes, ...]:
        """Where something is mounted once somebody looks, or was then."""
        self.now()
        return self._automounts

    def _read(self) -> None:
        self._found = mounts()
        self._remote = remote_points(self._found)
        self._automounts = tuple(each.point for each in self._found or () if each.is_automount)

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
            self._fd: int | None = os.open(_MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
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
