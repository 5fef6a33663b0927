"""With no free block left, denials are still stored, and the store still opens.

Each small file system is created in its own mount namespace, which ends with the test.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.power_cuts import python_environment
from support.sizes import Sizes

pytestmark = pytest.mark.needs("namespaces")
HANG_GUARD = 600
WITHOUT_RESERVE = "without-reserve"
MOUNT = 'mount -t "$1" -o "$2" "$3" "$4" && chmod 700 "$4" && shift 4 && exec "$@"'
FULL_DISK = f"""
import os, sys
from pathlib import Path
from rootsd.core.errors import RootsdError
from rootsd.state.store import schema, store
from rootsd.state.store.store import Store
from support.sample_decisions import NOON, decide, denied
from support.stores import outside

disk, wanted, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if how == {WITHOUT_RESERVE!r}:
    schema.RESERVE_BYTES = 0
opened = Store.open(disk / "state", outside(disk / "state"))
for size in (65536, 4096, 512, 1):
    with open(disk / f"filler-{{size}}", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(size))
        except OSError:
            pass
free = os.statvfs(disk).f_bavail
accepted, why = 0, ""
try:
    while accepted < wanted:
        opened.append([decide(denied(accepted + 1))], NOON)
        accepted += 1
except RootsdError as error:
    why = type(error).__name__
opened.close()
again = Store.open(disk / "state", outside(disk / "state"))
loaded = again.load()
print(free, accepted, len(again.events()), len(loaded.projects), repr(loaded.note), why)
"""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """How to make a small one: the command for an image of so many bytes, or none for memory."""

    name: str
    make: tuple[str, ...]
    size: int


TMPFS = FileSystem("tmpfs", (), 4 << 20)
EXT4 = FileSystem("ext4", ("mkfs.ext4", "-q", "-m", "0"), 8 << 20)
BTRFS = FileSystem("btrfs", ("mkfs.btrfs", "-q"), 128 << 20)


def _on_full_disk(file_system: FileSystem, tmp_path: Path, wanted: int, how: str = "") -> str:
    """What FULL_DISK prints: free blocks, decisions accepted, events and projects found when it
    is opened again, the note of that, and the refusal."""
    image, point = tmp_path / "image", tmp_path / "disk"
    point.mkdir()
    source, options = "tmpfs", f"size={file_system.size}"
    if file_system.make:
        image.touch()
        with image.open("r+b") as file:
            file.truncate(file_system.size)
        subprocess.run([*file_system.make, image], check=True, timeout=HANG_GUARD)
        source, options = str(image), "loop"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MOUNT, "sh", file_system.name, options, source, point,
         sys.executable, "-c", FULL_DISK, point, str(wanted), how],
        env=python_environment(), capture_output=True, text=True, timeout=HANG_GUARD, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "file_system",
    [
        pytest.param(TMPFS, id="tmpfs"),
        pytest.param(EXT4, id="ext4", marks=pytest.mark.needs("ext4")),
        pytest.param(BTRFS, id="btrfs", marks=pytest.mark.needs("btrfs")),
    ],
)
def test_a_full_disk_still_accepts_denials(
    tmp_path: Path, file_system: FileSystem, sizes: Sizes
) -> None:
    # A decision takes a tenth of a second on btrfs, and a hundredth on the others.
    check = 150 if file_system is BTRFS else 1_000
    wanted = sizes.pick(test=40, check=check, soak=1_000)
    expected = f"0 {wanted} {wanted} {wanted} '' \n"
    assert _on_full_disk(file_system, tmp_path, wanted) == expected


@pytest.mark.parametrize("file_system", [TMPFS], ids=["tmpfs"])
def test_control_without_its_reserve_the_store_refuses(
    tmp_path: Path, file_system: FileSystem
) -> None:
    free, accepted, events, projects, note, why = _on_full_disk(
        file_system, tmp_path, 1_000, WITHOUT_RESERVE
    ).split()
    assert (free, note, why) == ("0", "''", "DiskFull")
    assert int(accepted) == int(events) == int(projects) < 100
