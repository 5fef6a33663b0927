"""An approval is for what was mounted: nothing passes it on, and nothing honest ends it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.mounted_folders import PUBLISHED, TOO_LATE, FileSystem, Memory
from support.sizes import Sizes
from support.subprocesses import OWN_MOUNTS, run_program

pytestmark = pytest.mark.needs("namespaces", "root")

_AGAIN, _REPLACED = "mounted again", "replaced"
_OF_A_DISK = {
    "approved": PUBLISHED,
    "restarted": PUBLISHED,
    "written": PUBLISHED,
    "forgotten": PUBLISHED,
    "unmounted": "suspended",
    "mounted again": PUBLISHED,
    "moved back": PUBLISHED,
    "replaced": _REPLACED,
    "another mounted": _REPLACED,
    "the first mounted": _REPLACED,
}
_OF_FUSE = _OF_A_DISK | {
    "mounted again": _AGAIN,
    "another mounted": _AGAIN,
    "the first mounted": _AGAIN,
}


def _without(*steps: str) -> dict[str, str]:
    return {step: left for step, left in _OF_A_DISK.items() if step not in steps}


_EXPECTED = {
    FileSystem.BINDFS: _OF_FUSE,
    FileSystem.SSHFS: _OF_FUSE,
    FileSystem.NTFS_3G: _OF_FUSE,
    FileSystem.EXT4: _OF_A_DISK,
    FileSystem.XFS: _OF_A_DISK,
    FileSystem.BTRFS: _OF_A_DISK,
    # A folder of the lower layer cannot be moved.
    FileSystem.OVERLAY: _without("moved back"),
    FileSystem.OVERLAY_IMAGE: _without("moved back"),
    FileSystem.SQUASHFS: _without("written", "moved back", "replaced"),
    FileSystem.EROFS: _without("written", "moved back", "replaced"),
}
_FEW = (FileSystem.BINDFS, FileSystem.OVERLAY)


def _told(folder: Path, memory: Memory, *kinds: FileSystem) -> dict[str, dict[str, str]]:
    """Return what the program prints. Images belong to `make check`: before, there are none."""
    if not kinds:
        return {}
    told: dict[str, dict[str, str]] = json.loads(
        run_program(OWN_MOUNTS, "support.mounted_folders", memory, *kinds, folder=folder)
    )
    return told


@pytest.mark.needs("bindfs")
def test_what_an_approval_outlives_where_inodes_are_counters_or_copied(tmp_path: Path) -> None:
    assert _told(tmp_path, Memory.IDENTITY, *_FEW) == {kind: _EXPECTED[kind] for kind in _FEW}


@pytest.mark.needs("bindfs")
def test_control_without_pins_an_approval_ends_when_memory_is_short(tmp_path: Path) -> None:
    told = _told(tmp_path, Memory.UNPINNED, FileSystem.BINDFS)[FileSystem.BINDFS]
    assert told["forgotten"] == _REPLACED


def test_control_with_birth_times_the_first_write_ends_an_approval(tmp_path: Path) -> None:
    told = _told(tmp_path, Memory.BIRTHS, FileSystem.OVERLAY)[FileSystem.OVERLAY]
    assert told["written"] == _REPLACED


@pytest.mark.needs(
    "bindfs", "btrfs", "erofs", "ext4", "ntfs-3g", "squashfs", "sshd", "sshfs", "xfs"
)
def test_what_an_approval_outlives_on_images_and_over_ssh(tmp_path: Path, sizes: Sizes) -> None:
    every = tuple(kind for kind in FileSystem if kind not in _FEW)
    kinds = sizes.pick(test=(), check=every, soak=every)
    assert _told(tmp_path, Memory.IDENTITY, *kinds) == {kind: _EXPECTED[kind] for kind in kinds}


@pytest.mark.needs("squashfs", "sshd", "sshfs")
def test_control_with_counters_an_approval_passes_to_another(tmp_path: Path, sizes: Sizes) -> None:
    every = (FileSystem.SQUASHFS, FileSystem.SSHFS)
    kinds = sizes.pick(test=(), check=every, soak=every)
    told = _told(tmp_path, Memory.COUNTERS, *kinds)
    # One was approved right after it was mounted, and then the other was mounted.
    kept = {kind: told[kind]["the first mounted"] for kind in kinds}
    assert kept == dict.fromkeys(kinds, PUBLISHED)


@pytest.mark.needs("squashfs")
def test_control_without_its_layers_an_overlay_passes_an_approval_to_another_image(
    tmp_path: Path, sizes: Sizes
) -> None:
    every = (FileSystem.OVERLAY_IMAGE,)
    kinds = sizes.pick(test=(), check=every, soak=every)
    told = _told(tmp_path, Memory.LAYERS, *kinds)
    assert [told[kind]["another mounted"] for kind in kinds] == [PUBLISHED] * len(kinds)


@pytest.mark.needs("erofs")
def test_control_with_lstat_an_image_takes_the_place_of_another(
    tmp_path: Path, sizes: Sizes
) -> None:
    kinds = sizes.pick(test=(), check=(FileSystem.EROFS,), soak=(FileSystem.EROFS,))
    told = _told(tmp_path, Memory.LSTAT, *kinds)
    assert [told[kind]["another mounted"] for kind in kinds] == [TOO_LATE] * len(kinds)


@pytest.mark.needs("xfs")
def test_xfs_is_known_by_its_uuid_on_older_kernels(tmp_path: Path, sizes: Sizes) -> None:
    kinds = sizes.pick(test=(), check=(FileSystem.XFS,), soak=(FileSystem.XFS,))
    told = _told(tmp_path, Memory.XFS_6_8, *kinds)
    assert told == {kind: _EXPECTED[kind] for kind in kinds}
