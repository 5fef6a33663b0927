"""A file system without an id of its own is recognized by its disk, never by a device number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.disk.block_devices import content_id, disk_id
from support.repositories import raw

pytestmark = pytest.mark.needs("linux")
FIRST, SECOND = os.makedev(7, 0), os.makedev(7, 1)


class _Devices:
    """The attributes that the kernel and udev show of block devices."""

    def __init__(self, top: Path) -> None:
        self.sysfs, self.udev = top / "sys", top / "udev"

    def show(self, device: int, **attributes: str) -> None:
        """Show attributes of a device; `__` stands for a slash."""
        for name, value in attributes.items():
            self._write(self.sysfs / self._number(device) / name.replace("__", "/"), value)

    def probe(self, device: int, *properties: str) -> None:
        """Let udev store properties of a device."""
        lines = "".join(f"E:{each}\n" for each in properties)
        self._write(self.udev / f"b{self._number(device)}", f"S:disk/by-id/x\n{lines}")

    def disk(self, device: int) -> bytes | None:
        return disk_id(device, _known_file_system, raw(self.sysfs), raw(self.udev))

    def content(self, device: int) -> bytes | None:
        return content_id(device, _known_file_system, raw(self.sysfs), raw(self.udev))

    @staticmethod
    def _number(device: int) -> str:
        return f"{os.major(device)}:{os.minor(device)}"

    @staticmethod
    def _write(file: Path, value: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value + "\n")


def _known_file_system(_fd: int) -> bytes | None:
    return b"uuid:home"


@pytest.fixture
def devices(tmp_path: Path) -> _Devices:
    return _Devices(tmp_path)


def test_an_unknown_device_has_no_id(devices: _Devices) -> None:
    assert devices.disk(FIRST) is None
    assert devices.content(FIRST) is None


def test_an_image_is_the_same_behind_another_loop_device(
    devices: _Devices, tmp_path: Path
) -> None:
    image, copy = tmp_path / "image", tmp_path / "copy"
    image.write_bytes(b"content")
    copy.write_bytes(b"content")
    devices.show(FIRST, loop__backing_file=str(image), loop__offset="0")
    devices.show(SECOND, loop__backing_file=str(image), loop__offset="0")
    assert devices.disk(FIRST) == devices.disk(SECOND) is not None
    assert devices.content(FIRST) == devices.content(SECOND) is not None
    devices.show(SECOND, loop__backing_file=str(copy))
    assert devices.disk(FIRST) != devices.disk(SECOND) is not None
    devices.show(SECOND, loop__backing_file=str(image), loop__offset="512")
    assert devices.disk(FIRST) != devices.disk(SECOND) is not None


def test_an_image_that_is_written_keeps_its_disk_but_not_its_content(
    devices: _Devices, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"content")
    devices.show(FIRST, loop__backing_file=str(image))
    disk, content = devices.disk(FIRST), devices.content(FIRST)
    image.write_bytes(b"another content")
    assert devices.disk(FIRST) == disk is not None
    assert devices.content(FIRST) != content is not None


def test_an_image_that_cannot_be_found_says_nothing(devices: _Devices, tmp_path: Path) -> None:
    devices.show(FIRST, loop__backing_file=f"{tmp_path}/image (deleted)", serial="x")
    assert devices.disk(FIRST) is None
    (tmp_path / "image").touch()
    (tmp_path / "link").symlink_to("image")
    devices.show(FIRST, loop__backing_file=f"{tmp_path}/link")
    assert devices.disk(FIRST) is None


def test_an_image_on_a_file_system_that_does_not_last_says_nothing(
    devices: _Devices, tmp_path: Path
) -> None:
    (tmp_path / "image").touch()
    devices.show(FIRST, loop__backing_file=f"{tmp_path}/image")
    unknown = disk_id(FIRST, lambda _fd: None, raw(devices.sysfs), raw(devices.udev))
    assert unknown is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ID_FS_UUID=1234-ABCD", "ID_FS_UUID=1234-ABCE"),
        ("ID_PART_ENTRY_UUID=a", "ID_PART_ENTRY_UUID=b"),
    ],
)
def test_the_properties_of_udev_name_a_file_system(
    devices: _Devices, one: str, other: str
) -> None:
    devices.probe(FIRST, "ID_FS_TYPE=vfat", one)
    devices.probe(SECOND, "ID_FS_TYPE=vfat", one)
    assert devices.disk(FIRST) == devices.disk(SECOND) is not None
    devices.probe(SECOND, "ID_FS_TYPE=vfat", other)
    assert devices.disk(FIRST) != devices.disk(SECOND) is not None


@pytest.mark.parametrize(
    "name", ["dm__uuid", "wwid", "device__wwid", "serial", "device__serial", "device__cid"]
)
def test_a_disk_is_known_by_the_number_of_its_maker(devices: _Devices, name: str) -> None:
    devices.show(FIRST, **{name: "naa.5000c500"})
    devices.show(SECOND, **{name: "naa.5000c500"})
    assert devices.disk(FIRST) == devices.disk(SECOND) is not None
    # Anybody may write another image to it.
    assert devices.content(FIRST) is None
    devices.show(SECOND, **{name: "naa.5000c501"})
    assert devices.disk(FIRST) != devices.disk(SECOND) is not None


def test_each_partition_of_a_disk_is_another_one(devices: _Devices) -> None:
    for device, number in ((FIRST, "1"), (SECOND, "2")):
        devices.show(device, wwid="naa.5000c500", partition=number)
    assert devices.disk(FIRST) != devices.disk(SECOND) is not None


def test_an_attribute_of_a_hostile_size_is_cut(devices: _Devices) -> None:
    devices.show(FIRST, serial="x" * 1_000_000)
    assert len(devices.disk(FIRST) or b"") < 64
