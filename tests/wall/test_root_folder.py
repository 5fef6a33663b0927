"""The folder of a root is opened only if it is the one that was approved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import DesiredMount
from rootsd.wall.kernel.root_folder import FolderChanged, identity_of, open_root


def test_a_folder_in_a_root_is_opened_in_that_very_root_and_without_links(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root / "a" / "b", other / "a" / "b"):
        folder.mkdir(parents=True)
    opened = os.open(root, os.O_RDONLY)
    identity = identity_of(opened)
    os.close(opened)
    inside = bytes(root / "a" / "b")
    wanted = DesiredMount(inside, Access.READ, identity=identity, checkout=bytes(root))
    held = open_root(wanted)
    assert os.fstat(held).st_ino == (root / "a" / "b").stat().st_ino
    os.close(held)
    (root / "a" / "b").rmdir()
    (root / "a" / "b").symlink_to(other)
    with pytest.raises(OSError, match="something else is there now"):
        open_root(wanted)
    root.rename(tmp_path / "gone")
    other.rename(root)
    with pytest.raises(FolderChanged):
        open_root(wanted)
