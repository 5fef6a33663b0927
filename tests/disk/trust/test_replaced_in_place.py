"""An approval is for one folder: its replacement is not published, on any file system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.replaced_folders import FileSystem, Memory, Replacement
from support.sizes import Sizes
from support.subprocesses import OWN_MOUNTS, run_program

pytestmark = pytest.mark.needs("namespaces")
_ON_LARGE_IMAGES = (FileSystem.BTRFS, FileSystem.XFS)
_NONE_KEPT: dict[str, int] = dict.fromkeys(Replacement, 0)


def _kept(folder: Path, kind: FileSystem, rounds: int, memory: Memory) -> dict[str, int]:
    if not rounds:  # its image belongs to `make check`
        return _NONE_KEPT
    arguments = (kind, str(rounds), memory)
    kept: dict[str, int] = json.loads(
        run_program(OWN_MOUNTS, "support.replaced_folders", *arguments, folder=folder)
    )
    return kept


@pytest.mark.parametrize(
    "kind",
    [
        FileSystem.EXT4,
        FileSystem.TMPFS,
        FileSystem.OVERLAY,
        pytest.param(FileSystem.BTRFS, marks=pytest.mark.needs("btrfs")),
        pytest.param(FileSystem.XFS, marks=pytest.mark.needs("xfs")),
        pytest.param(FileSystem.FUSE, marks=pytest.mark.needs("bindfs")),
    ],
)
def test_no_approval_outlives_its_folder(kind: FileSystem, tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=0 if kind in _ON_LARGE_IMAGES else 2, check=100, soak=300)
    assert _kept(tmp_path, kind, rounds, Memory.IDENTITY) == _NONE_KEPT


@pytest.mark.parametrize("kind", [FileSystem.EXT4, FileSystem.OVERLAY])
def test_control_device_and_inode_alone_accept_a_new_clone(
    kind: FileSystem, tmp_path: Path
) -> None:
    kept = _kept(tmp_path, kind, 5, Memory.INODE)
    assert kept[Replacement.CLONED_AGAIN] > 0
