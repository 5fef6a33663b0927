"""Knows where file systems are mounted, and which of them depend on another machine or program.

One read of /proc/self/mountinfo replaces a stat of every directory in a walk: a walk that does not
enter mount points cannot leave its file system. Source: proc_pid_mountinfo(5). A system without
that file has no such list (None), and the walk compares device numbers instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rootsd.core.paths import contains

MOUNTINFO = b"/proc/self/mountinfo"
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_POINT_FIELD = 4

# inotify sees only what is done through the mount; a change made elsewhere never arrives. FUSE is
# `fuse.NAME`, or only `fuse` where the file system gives no name, as bindfs does.
_REMOTE_KINDS = frozenset(
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
        return not self.local or self.kind in _REMOTE_KINDS or self.kind.startswith(b"fuse.")


def mounts() -> tuple[Mount, ...] | None:
    """What this process sees mounted, in the order of mounting; None where that is not told."""
    told = told_mounts()
    return None if told is None else parse_mounts(told)


def told_mounts() -> bytes | None:
    """The same as the system tells it."""
    try:
        with open(MOUNTINFO, "rb") as file:
            return file.read()
    except OSError:
        return None


def parse_mounts(told: bytes) -> tuple[Mount, ...]:
    """What `told_mounts` gave, as `mounts` does."""
    return tuple(_parse(line) for line in told.splitlines() if b" - " in line)


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


def remote_points(found: Iterable[Mount]) -> tuple[bytes, ...]:
    """Where file systems are mounted that depend on another machine or program."""
    return tuple(mount.point for mount in found if mount.is_remote)


def innermost(points: Iterable[bytes], path: bytes) -> bytes | None:
    """Which of the points holds `path`; the innermost of several."""
    return max((point for point in points if contains(point, path)), key=len, default=None)
