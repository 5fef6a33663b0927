"""The store's files are written in place where the file system would copy on write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.state.store.nocow import write_in_place
from support.power_cuts import python_environment

HANG_GUARD = 60
MARKED = """
import sys
from pathlib import Path
from rootsd.state.store.nocow import write_in_place
state = Path(sys.argv[1])
print(write_in_place(state), write_in_place(state))
(state / "new").touch()
"""
ON_BTRFS = (
    'mount -o loop "$1" "$2" && mkdir "$2/state" && "$3" -c "$4" "$2/state"'
    ' && touch "$2/other" && lsattr "$2/state/new" "$2/other"'
)


@pytest.mark.needs("namespaces", "btrfs")
def test_new_files_of_a_marked_folder_on_btrfs_are_written_in_place(tmp_path: Path) -> None:
    image, point = tmp_path / "image", tmp_path / "disk"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, timeout=HANG_GUARD)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", ON_BTRFS, "sh", image, point, sys.executable, MARKED],
        env=python_environment(), capture_output=True, text=True, timeout=HANG_GUARD, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, new, other = done.stdout.splitlines()
    assert said == "True True"
    assert "C" in new.split()[0]
    assert "C" not in other.split()[0]


def test_without_such_a_flag_nothing_happens(tmp_path: Path) -> None:
    before = tmp_path.stat()
    write_in_place(tmp_path)
    assert tmp_path.stat() == before
    assert not write_in_place(tmp_path / "missing")
