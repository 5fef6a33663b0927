"""Identify a file system, and decide which facts about its folders count.

* **A file system with a UUID or an id of its own** is that id, wherever and however often it is
  mounted. Some report the number of their device as the id, which says nothing.
* **Without such an id**, it is the disk below it, see `rootsd.disk.block_devices`, or the server
  that keeps it, or the folders that overlayfs joins.
* **overlayfs** hands out the handles of its layers, with the UUID of the layer in front. Below a
  layer without a UUID, such as a squashfs image, another one may be mounted later, with the same
  handles. So what such a layer lies on belongs to the id, as far as this process can see it. If
  layers lie on several file systems, inode numbers may be counters. So they count only on kernels
  that give no handles.
* **FUSE** hands out handles and inode numbers from counters that begin anew with each mount, and
  that go on when the kernel has forgotten a folder. A birth time is what the program says. So a
  handle counts within its mount only, and for as long as `rootsd.disk.folder_pins` keeps it.
* **FAT and exFAT** have no inodes on the disk. Their numbers are counters, too. Birth times count.

What does not last beyond the mount binds an identity to the mount: to the number that statx(2)
gives it, or, before Linux 6.8, to the moment at which the FUSE connection was made. Without any of
these, nothing distinguishes a folder there.

Sources: statfs(2), statx(2), ioctl_fs(2) FS_IOC_GETFSUUID, ioctl_xfs_fsgeometry(2),
ioctl BTRFS_IOC_FS_INFO, Documentation/filesystems/fuse.rst and overlayfs.rst of Linux.
"""

from __future__ import annotations

import hashlib
import os
import sys
from enum import Enum
from functools import cache

from msgspec import Struct

from rootsd.core.model import MountBinding
from rootsd.core.paths import ancestors
from rootsd.disk.block_devices import content_id, disk_id
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.inode import FUSE, file_system_type, mount_number_at
from rootsd.disk.mounts import Mount, mount_of, process_mounts
from rootsd.disk.reader import open_folder

_BTRFS, _XFS, _OVERLAY = 0x9123683E, 0x58465342, 0x794C7630
_FAT_TYPES = frozenset((0x4D44, 0x2011BAB0))
# squashfs, ISO 9660, cramfs, and romfs
_READ_ONLY_TYPES = frozenset((0x73717368, 0x9660, 0x28CD3D45, 0x7275))

_GETFSUUID = 0x80111500
_XFS_GEOMETRY, _XFS_GEOMETRY_SIZE, _XFS_UUID = 0x8070587C, 112, slice(64, 80)
_BTRFS_INFO, _BTRFS_INFO_SIZE, _BTRFS_UUID = 0x8400941F, 1024, slice(16, 32)
_UUID_IOCTL_SIZE = 17

_CONNECTIONS = "/sys/fs/fuse/connections"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_BOOT_ID_CAP = 64
_MAX_KNOWN = 256
_MAX_DEPTH = 4
_LAYERS = (b"lowerdir=", b"lowerdir+=", b"upperdir=")


class FolderFacts(Enum):
    """Which facts distinguish the folders of a file system from each other."""

    ALL = "inode, handle, and birth time"
    BIRTH = "birth time"
    HANDLE = "handle, within one mount"
    HANDLE_FIRST = "handle, or else inode and birth time"


class FileSystem(Struct, frozen=True):
    """What identifies a file system.

    `lasts` says whether `id` belongs to it alone, also when it is mounted again. If not, the id is
    what was mounted, and another file system may have the same.
    """

    id: bytes
    lasts: bool = True
    facts: FolderFacts = FolderFacts.ALL


_known: dict[int, FileSystem] = {}
_UUID = b"uuid:"
_OWN_IDS = (_UUID, b"fsid:")


def names_itself(file_system_id: bytes) -> bool:
    """Return whether an id comes from the file system itself."""
    return file_system_id.startswith(_OWN_IDS)


def file_system_of(fd: int, device: int, mount_number: int | None) -> FileSystem:
    """Return the file system of an open file, whose device number is `device`.

    `mount_number` is that of `rootsd.disk.inode.StatxFacts`. It saves the work for all but the
    first file of a mount.
    """
    known = None if mount_number is None else _known.get(mount_number)
    if known is not None:
        return known
    found = _read_file_system(fd, device, 0)
    if mount_number is not None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[mount_number] = found
    return found


def mount_binding(path: bytes, device: int, mount_number: int | None) -> MountBinding | None:
    """Return the binding of the folder at `path` to its mount, or None if the system has none."""
    number = _connection_time(device) if mount_number is None else mount_number
    boot = _boot_id()
    return None if number is None or not boot else MountBinding(boot, number, device, path)


def mounts_inside(path: bytes) -> tuple[bytes, ...]:
    """Return an id for each mount inside a folder that depends on another machine or program.

    This asks no such machine or program. Another mount at the same place has another id, unless
    its server identifies folders for good.
    """
    foreign = process_mounts().foreign()
    if not foreign:
        return ()
    start = path.rstrip(b"/") + b"/"
    return tuple(sorted({_mount_id(each) for each in foreign if each.point.startswith(start)}))


def local_mount_numbers() -> dict[bytes, int | None]:
    """Return the number of the mount at each point outside of all foreign mounts.

    Foreign mounts are left out, because a lookup inside one may hang.
    """
    table = process_mounts()
    foreign = {each.point for each in table.foreign()}
    points = {each.point for each in table.now() or ()}
    return {
        point: mount_number_at(point)
        for point in points
        if foreign.isdisjoint((point, *ancestors(point)))
    }


def _mount_id(mount: Mount) -> bytes:
    number = b"" if mount.lasts else b"%s:%d" % (
        _boot_id().encode(), mount_number_at(mount.point) or 0
    )  # fmt: skip
    return _digest(b"inside:", mount.point, mount.kind, mount.source, number)


if sys.platform == "linux":
    import fcntl

    def _ioctl(fd: int, request: int, size: int) -> bytes | None:
        buffer = bytearray(size)
        try:
            fcntl.ioctl(fd, request, buffer)
        except OSError:
            return None
        return bytes(buffer)

else:

    def _ioctl(_fd: int, _request: int, _size: int) -> bytes | None:
        return None


def _read_file_system(fd: int, device: int, depth: int) -> FileSystem:
    kind = file_system_type(fd)
    # FUSE passes an ioctl on to its program, which may answer anything.
    if kind == FUSE:
        return FileSystem(_source_id(fd), lasts=False, facts=FolderFacts.HANDLE)
    facts = FolderFacts.BIRTH if kind in _FAT_TYPES else FolderFacts.ALL
    own = _own_id(fd, kind, device)
    if kind == _OVERLAY:
        return _joined(own or _source_id(fd), fd, depth)
    if own is not None:
        return FileSystem(own, facts=facts)
    mount = mount_of(fd)
    if mount is not None and mount.lasts:
        return FileSystem(_source_id(fd), facts=facts)
    if os.major(device) and depth < _MAX_DEPTH:
        below = content_id if kind in _READ_ONLY_TYPES else disk_id
        if (disk := below(device, lambda image: _lasting_id(image, depth + 1))) is not None:
            return FileSystem(disk, facts=facts)
    if sys.platform != "linux":
        return FileSystem(b"fsid:%x" % _fsid(fd), facts=facts)
    return FileSystem(_source_id(fd), lasts=False, facts=facts)


def _joined(own: bytes, fd: int, depth: int) -> FileSystem:
    """Return the overlayfs of an open file. `own` is its id without what its layers lie on."""
    mount = mount_of(fd)
    options = () if mount is None else mount.options.split(b",")
    layers = (each.partition(b"=")[2] for each in options if each.startswith(_LAYERS))
    paths = (path for each in layers for path in each.split(b":") if path.startswith(b"/"))
    found = [each for path in paths if (each := _layer(path, depth + 1)) is not None]
    unnamed = [each.id for each in found if not each.id.startswith(_UUID)]
    lasts = all(each.lasts for each in found)
    id_ = _digest(b"source:", own, *unnamed) if unnamed else own
    return FileSystem(id_, lasts, FolderFacts.HANDLE_FIRST)


def _layer(path: bytes, depth: int) -> FileSystem | None:
    """Return the file system of a layer, or None if it is out of reach, as in a container."""
    if depth >= _MAX_DEPTH or not may_follow(path):
        return None
    try:
        fd = open_folder(path)
    except (OSError, ValueError):
        return None
    try:
        return _read_file_system(fd, os.fstat(fd).st_dev, depth)
    finally:
        os.close(fd)


def _lasting_id(fd: int, depth: int) -> bytes | None:
    found = _read_file_system(fd, os.fstat(fd).st_dev, depth)
    return found.id if found.lasts else None


def _own_id(fd: int, kind: int, device: int) -> bytes | None:
    """Return the id that a file system has for itself, or None."""
    if kind == _BTRFS:  # each of its subvolumes has another fsid
        answer = _ioctl(fd, _BTRFS_INFO, _BTRFS_INFO_SIZE)
        return None if answer is None else _UUID + answer[_BTRFS_UUID]
    answer = _ioctl(fd, _GETFSUUID, _UUID_IOCTL_SIZE)
    uuid = b"" if answer is None else answer[1 : 1 + answer[0]]
    if not any(uuid) and kind == _XFS:  # Linux before 6.9
        uuid = (_ioctl(fd, _XFS_GEOMETRY, _XFS_GEOMETRY_SIZE) or b"")[_XFS_UUID]
    # A file system that was created without a UUID reports zeros.
    if any(uuid):
        return _UUID + uuid
    if kind == _OVERLAY:  # its fsid may be that of its upper folder
        return None
    fsid = _fsid(fd)
    if fsid in (0, _encoded(device)):
        return None
    mount = None if os.major(device) else mount_of(fd)
    if mount is not None and mount.is_remote:  # a server may have chosen the fsid
        return None
    return b"fsid:%x" % fsid


def _fsid(fd: int) -> int:
    return os.fstatvfs(fd).f_fsid & 0xFFFFFFFFFFFFFFFF


def _encoded(device: int) -> int:
    """Return a device number as the kernel puts it into an fsid: huge_encode_dev()."""
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def _source_id(fd: int) -> bytes:
    """Return an id of what is mounted: the type, the source, and the layers of overlayfs."""
    mount = mount_of(fd)
    if mount is None:
        return b"unknown"
    layers = (each for each in mount.options.split(b",") if each.startswith(_LAYERS))
    return _digest(b"source:", mount.kind, mount.source, *layers)


def _digest(prefix: bytes, *parts: bytes) -> bytes:
    return prefix + hashlib.sha256(b"\0".join(parts)).digest()[:16]


@cache
def _boot_id() -> str:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(_BOOT_ID_CAP).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _connection_time(device: int) -> int | None:
    """Return when the FUSE connection with this device number was made, in ns, or None."""
    try:
        return os.stat(f"{_CONNECTIONS}/{os.minor(device)}").st_ctime_ns
    except OSError:
        return None
