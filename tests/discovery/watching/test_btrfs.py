"""A subvolume of btrfs is a folder of its file system, though it has an fsid of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.subprocesses import OWN_MOUNTS
from support.watching_process import run_watching

_DELETED = """
from rootsd.disk import file_systems
if "{control}":
    class Forgetful(dict):
        __setitem__ = lambda *_: None
    file_systems._BTRFS, file_systems._known = 0, Forgetful()
image, disk = top / "image", top / "disk"
disk.mkdir()
with image.open("wb") as file:
    file.truncate(128 << 20)
sh("mkfs.btrfs", "-q", image)
sh("mount", "-o", "loop", image, disk)
sh("btrfs", "subvolume", "create", disk / "one")
fake_repository(disk / "one")
discovery = start(disk)
observed.wait_for(raw(disk / "one"))
sh("btrfs", "subvolume", "delete", disk / "one")
observed.wait(lambda: observed.all[-1] == {expected}(raw(disk / "one")))
discovery.stop()
unmount(disk)
"""


@pytest.mark.needs("namespaces", "btrfs")
@pytest.mark.parametrize(
    ("control", "expected"),
    [
        pytest.param("", "ProjectGone", id="by the UUID"),
        pytest.param("control", "ProjectUnreachable", id="control: by the fsid"),
    ],
)
def test_a_deleted_subvolume_is_gone(control: str, expected: str, tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, _DELETED.format(control=control, expected=expected), tmp_path)
