"""What identifies each kind of file system, as the kernel describes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from rootsd.disk import file_systems
from rootsd.disk.file_systems import FileSystem, FolderFacts, file_system_of, mount_binding
from rootsd.disk.inode import statx_facts
from rootsd.disk.mounts import Mount, parse_mountinfo

pytestmark = pytest.mark.needs("linux")

ANONYMOUS, DISK = os.makedev(0, 46), os.makedev(7, 300)
DISK_FSID = 0x10072C  # what the kernel makes of 7:300
UUID = bytes(range(16))


class _Kernel(NamedTuple):
    """The answers about one file system."""

    magic: int
    line: str
    device: int = ANONYMOUS
    fsid: int = 0
    uuid: bytes = b""
    older_uuid: bytes = b""
    disk: bytes | None = None
    content: bytes | None = None

    def ioctl(self, _fd: int, request: int, size: int) -> bytes | None:
        """Answer an ioctl."""
        answers = {
            file_systems._GETFSUUID: self.uuid and bytes([16]) + self.uuid,
            file_systems._XFS_GEOMETRY: self.older_uuid and bytes(64) + self.older_uuid,
            file_systems._BTRFS_INFO: self.older_uuid and bytes(16) + self.older_uuid,
        }
        answer = answers[request]
        return answer.ljust(size, b"\0") if answer else None

    @property
    def mount(self) -> Mount:
        (mount,) = parse_mountinfo(f"85 84 0:46 / /p rw,relatime - {self.line} rw".encode())
        return mount


def _file_system(kernel: _Kernel, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    monkeypatch.setattr(file_systems, "file_system_type", lambda _fd: kernel.magic)
    monkeypatch.setattr(file_systems, "_ioctl", kernel.ioctl)
    monkeypatch.setattr(file_systems, "_fsid", lambda _fd: kernel.fsid)
    monkeypatch.setattr(file_systems, "mount_of", lambda _fd: kernel.mount)
    monkeypatch.setattr(file_systems, "disk_id", lambda *_: kernel.disk)
    monkeypatch.setattr(file_systems, "content_id", lambda *_: kernel.content)
    return file_system_of(-1, kernel.device, None)


FUSE, FAT, EXFAT, NTFS3 = 0x65735546, 0x4D44, 0x2011BAB0, 0x7366746E
SQUASHFS, ISO, XFS, EXT4 = 0x73717368, 0x9660, 0x58465342, 0xEF53
BTRFS, OVERLAY, NFS = 0x9123683E, 0x794C7630, 0x6969
CIFS, P9, ZFS = 0xFE534D42, 0x01021997, 0x2FC12FC1

ITSELF = [
    _Kernel(EXT4, "ext4 /dev/sda1", DISK, 0x1234, uuid=UUID),
    _Kernel(EXT4, "ext4 /dev/sda1", DISK, 0x1234),  # before Linux 6.9
    _Kernel(XFS, "xfs /dev/sda1", DISK, DISK_FSID, older_uuid=UUID),  # before Linux 6.9
    _Kernel(BTRFS, "btrfs /dev/sda1", ANONYMOUS, 0x1234, older_uuid=UUID),
    _Kernel(ZFS, "zfs tank/src", ANONYMOUS, 0x1234),
    _Kernel(NTFS3, "ntfs3 /dev/sda1", DISK, 0x1234),
]
BY_SOURCE = [
    _Kernel(NFS, "nfs4 server:/export"),
    _Kernel(CIFS, "cifs //server/share", fsid=0x1234),
    _Kernel(OVERLAY, "overlay overlay", fsid=0x1234),
]
BY_DISK = [
    _Kernel(FAT, "vfat /dev/sdb1", DISK, DISK_FSID, disk=b"disk:1"),
    _Kernel(EXFAT, "exfat /dev/sdb1", DISK, DISK_FSID, disk=b"disk:1"),
    _Kernel(NTFS3, "ntfs3 /dev/sdb1", DISK, DISK_FSID, disk=b"disk:1"),
    _Kernel(EXT4, "ext4 /dev/sdb1", DISK, DISK_FSID, uuid=bytes(16), disk=b"disk:1"),
]
BY_CONTENT = [
    _Kernel(SQUASHFS, "squashfs /dev/loop0", DISK, DISK_FSID, content=b"disk:2"),
    _Kernel(ISO, "iso9660 /dev/sr0", DISK, DISK_FSID, content=b"disk:2"),
]
BY_MOUNT = [
    _Kernel(FUSE, "fuse.sshfs staging:/srv"),
    _Kernel(FUSE, "fuse.rclone remote:", fsid=0x1234, uuid=UUID),  # its program answers an ioctl
    _Kernel(FUSE, "fuse.gocryptfs /home/a/crypt"),
    _Kernel(FUSE, "fuse.mergerfs 1:2"),
    _Kernel(FUSE, "fuse.Editor.AppImage Editor.AppImage"),
    _Kernel(FUSE, "fuse /home/a/src"),
    _Kernel(FUSE, "fuseblk /dev/sdb1", DISK, disk=b"disk:1"),
    _Kernel(FUSE, "virtiofs shared"),
    _Kernel(P9, "9p C:\\134", fsid=0x1234),
    _Kernel(0x1, "unheard /dev/sdb1", DISK, DISK_FSID),
    _Kernel(FAT, "vfat /dev/sdb1", DISK, DISK_FSID),
    # Anybody may write another image to the disk.
    _Kernel(SQUASHFS, "squashfs /dev/sdb1", DISK, DISK_FSID, disk=b"disk:1"),
]


def _name(kernel: _Kernel) -> str:
    return kernel.line


@pytest.mark.parametrize("kernel", ITSELF, ids=_name)
def test_an_id_of_its_own_names_a_file_system(
    kernel: _Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _file_system(kernel, monkeypatch)
    assert found.lasts
    assert file_systems.names_itself(found.id)
    # It may be mounted from another device.
    moved = kernel._replace(line=kernel.line.replace("/dev/sda1", "/dev/sdc3"))
    assert _file_system(moved, monkeypatch) == found


@pytest.mark.parametrize("kernel", BY_SOURCE, ids=_name)
def test_a_server_or_the_layers_name_a_file_system(
    kernel: _Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _file_system(kernel, monkeypatch)
    assert found.lasts
    assert not file_systems.names_itself(found.id)
    assert _file_system(kernel, monkeypatch) == found
    other = kernel._replace(line=kernel.line + "-other")
    assert _file_system(other, monkeypatch).id != found.id


def test_the_layers_of_overlayfs_tell_two_without_a_uuid_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def over(upper: str) -> FileSystem:
        line = f"overlay overlay ro,lowerdir=/l,upperdir=/{upper},workdir=/w -"
        return _file_system(_Kernel(OVERLAY, line), monkeypatch)

    assert over("a") == over("a")
    assert over("a") != over("b")


@pytest.mark.parametrize(
    ("below", "is_named", "lasts"),
    [(FileSystem(b"uuid:1"), True, True), (FileSystem(b"disk:1"), False, True),
     (FileSystem(b"source:1", lasts=False), False, False), (None, True, True)],
)  # fmt: skip
def test_what_the_layers_of_overlayfs_lie_on_counts_unless_handles_name_it(
    below: FileSystem | None,
    is_named: bool,
    lasts: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def layer(path: bytes, _depth: int) -> FileSystem | None:
        asked.append(path)
        return below

    monkeypatch.setattr(file_systems, "_layer", layer)
    line = "overlay overlay ro,lowerdir=/l:/m:n,upperdir=/u,workdir=/w -"
    found = _file_system(_Kernel(OVERLAY, line, uuid=UUID), monkeypatch)
    assert asked == [b"/l", b"/m", b"/u"]
    assert (found.id == b"uuid:" + UUID, found.lasts) == (is_named, lasts)


@pytest.mark.parametrize("kernel", [*BY_DISK, *BY_CONTENT], ids=_name)
def test_the_disk_names_a_file_system_that_does_not(
    kernel: _Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _file_system(kernel, monkeypatch)
    assert found.lasts
    assert found.id in (kernel.disk, kernel.content)
    assert not file_systems.names_itself(found.id)


@pytest.mark.parametrize("kernel", BY_MOUNT, ids=_name)
def test_only_the_mount_names_all_others(kernel: _Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _file_system(kernel, monkeypatch).lasts


@pytest.mark.parametrize(
    ("kernels", "facts"),
    [
        ([*ITSELF, *BY_SOURCE[:2], *BY_CONTENT], FolderFacts.ALL),
        (BY_SOURCE[2:], FolderFacts.HANDLE_FIRST),
        (BY_DISK[:2], FolderFacts.BIRTH),
        (BY_MOUNT[:8], FolderFacts.HANDLE),
    ],
)
def test_which_facts_about_a_folder_count(
    kernels: list[_Kernel], facts: FolderFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {_file_system(each, monkeypatch).facts for each in kernels} == {facts}


def test_without_the_number_of_a_mount_the_time_of_its_connection_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.8, the kernel gives the number of a mount to the next one."""
    monkeypatch.setattr(file_systems, "_CONNECTIONS", str(tmp_path))
    assert mount_binding(b"/p", ANONYMOUS, None) is None
    (tmp_path / "46").mkdir()
    before = mount_binding(b"/p", ANONYMOUS, None)
    assert before is not None
    assert mount_binding(b"/p", ANONYMOUS, None) == before
    (tmp_path / "46").chmod(0o700)  # a later change time, as that of another connection
    os.utime(tmp_path / "46")
    assert mount_binding(b"/p", ANONYMOUS, None) != before


def test_the_numbers_of_two_starts_of_the_machine_do_not_meet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = mount_binding(b"/p", ANONYMOUS, 7)
    monkeypatch.setattr(file_systems, "_boot_id", lambda: "another")
    assert mount_binding(b"/p", ANONYMOUS, 7) != before
    monkeypatch.setattr(file_systems, "_boot_id", lambda: "")
    assert mount_binding(b"/p", ANONYMOUS, 7) is None


def test_a_mount_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        found = os.fstat(fd)
        number = statx_facts(fd, found).mount_number
        if number is None:
            pytest.skip("the kernel does not number mounts for good: Linux 6.8 does")
        before = file_system_of(fd, found.st_dev, number)
        monkeypatch.setattr(file_systems, "_read_file_system", None)
        assert file_system_of(fd, found.st_dev, number) is before
    finally:
        os.close(fd)
