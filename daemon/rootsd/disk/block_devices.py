"""Identify the disk below a file system that has no id of its own.

The number of a block device says nothing: the next disk, or the next image, gets it. So the id
comes from what the number stands for now, the first of these that is known:

* The image file behind a loop device. Its copy has the same content, but is another file.
* The UUID of the file system, or else of its partition, as udev(7) has read them.
* The UUID of the device mapper, such as that of an encrypted volume.
* The number that the maker of the disk gave it, and the partition.

The content of a file system that is never written identifies its folders. So for those, the image
file must also be unchanged, and the identity of a disk is not enough, because anybody may write
another image to it.

Sources: sysfs(5), Documentation/ABI/testing/sysfs-block* of Linux, udev(7), loop(4).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable

from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.inode import file_handle, statx_facts
from rootsd.disk.reader import open_path, read_small

_SYSFS = b"/sys/dev/block"
_UDEV = b"/run/udev/data"
_CAP = 1 << 16
_MAKERS_NUMBERS = (b"wwid", b"device/wwid", b"serial", b"device/serial", b"device/cid")

# Returns the id of the file system of an open file, or None if no id lasts.
FileSystemId = Callable[[int], "bytes | None"]


def disk_id(
    device: int, file_system_id: FileSystemId, sysfs: bytes = _SYSFS, udev: bytes = _UDEV
) -> bytes | None:
    """Return an id of the block device with this number that lasts, or None."""
    folder = _folder_of(device, sysfs)
    if (image := _image_path(folder)) is not None:
        state = _image_state(image, file_system_id)
        return state and _digest(b"image", *state[0], *_place_in(folder))
    known = _udev_facts(device, udev)
    for key in (b"ID_FS_UUID", b"ID_PART_ENTRY_UUID"):
        if value := known.get(key):
            return _digest(key, known.get(b"ID_FS_TYPE", b""), value)
    if mapped := _read(folder, b"dm/uuid"):
        return _digest(b"mapped", mapped)
    for name in _MAKERS_NUMBERS:
        if number := _read(folder, name) or _read(folder, b"../" + name):
            return _digest(name, number, *_place_in(folder))
    return None


def content_id(
    device: int, file_system_id: FileSystemId, sysfs: bytes = _SYSFS, udev: bytes = _UDEV
) -> bytes | None:
    """Return an id of the content of a block device that is never written, or None."""
    folder = _folder_of(device, sysfs)
    if (image := _image_path(folder)) is not None:
        state = _image_state(image, file_system_id)
        return state and _digest(b"content", *state[0], *state[1], *_place_in(folder))
    known = _udev_facts(device, udev)
    uuid = known.get(b"ID_FS_UUID")
    return _digest(b"content", known.get(b"ID_FS_TYPE", b""), uuid) if uuid else None


def _folder_of(device: int, sysfs: bytes) -> bytes:
    return b"%s/%d:%d" % (sysfs, os.major(device), os.minor(device))


def _image_path(folder: bytes) -> bytes | None:
    return _read(folder, b"loop/backing_file") or _read(folder, b"../loop/backing_file") or None


def _image_state(
    image: bytes, file_system_id: FileSystemId
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]] | None:
    """Return what identifies an image file, and what identifies its content; None if unknown."""
    if not may_follow(image):
        return None
    try:
        fd = open_path(image)
    except (OSError, ValueError):  # it was deleted, or it is out of reach
        return None
    try:
        found = os.fstat(fd)
        holder, handle = file_system_id(fd), file_handle(fd)
        born_ns = statx_facts(fd, found).born_ns
    finally:
        os.close(fd)
    if not stat.S_ISREG(found.st_mode) or holder is None or (handle is None and born_ns is None):
        return None
    own = b"%d" % born_ns if handle is None and born_ns is not None else handle or b""
    content = (b"%d" % found.st_size, b"%d" % found.st_ctime_ns)
    return (holder, b"%d" % found.st_ino, own), content


def _place_in(folder: bytes) -> tuple[bytes, bytes]:
    """Return the number of the partition and the offset in an image."""
    offset = _read(folder, b"loop/offset") or _read(folder, b"../loop/offset")
    return _read(folder, b"partition"), offset


def _udev_facts(device: int, udev: bytes) -> dict[bytes, bytes]:
    """Return the properties of a block device that udev has stored."""
    text = read_small(b"%s/b%d:%d" % (udev, os.major(device), os.minor(device)), _CAP) or b""
    lines = (line[2:].partition(b"=") for line in text.splitlines() if line.startswith(b"E:"))
    return {key: value for key, _, value in lines}


def _read(folder: bytes, name: bytes) -> bytes:
    """Return the value of an attribute; empty if there is none. Its folder is a link."""
    try:
        with open(folder + b"/" + name, "rb") as file:
            return file.read(_CAP).strip()
    except OSError:
        return b""


def _digest(*parts: bytes) -> bytes:
    return b"disk:" + hashlib.sha256(b"\0".join(parts)).digest()[:16]
