"""A folder of a hostile program is removed, and nothing else."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rootsd.wall.kernel.removal import remove_tree
from rootsd.wall.system_calls import closing
from support.sizes import Sizes

_FEW_DESCRIPTORS = 40
REMOVE = """
import os, sys
from rootsd.wall.kernel.removal import remove_tree
remove_tree(sys.argv[2], os.open(sys.argv[1], os.O_RDONLY))
"""


def remove(folder: Path) -> None:
    with closing(os.open(folder.parent, os.O_RDONLY)) as above:
        remove_tree(folder.name, above)


def make_deep(folder: Path, depth: int) -> None:
    """Make folders in each other, and leave the working directory as it was."""
    folder.mkdir()
    with closing(os.open(folder, os.O_RDONLY)) as top:
        here = os.dup(top)
        for _ in range(depth):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.mkdir("last", 0, dir_fd=here)
        os.close(here)


@contextmanager
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + _FEW_DESCRIPTORS, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_folders_of_any_depth_are_removed(tmp_path: Path, sizes: Sizes) -> None:
    make_deep(tmp_path / "top", sizes.pick(test=1_100, check=1_100, soak=3_300))
    with few_descriptors():
        with pytest.raises((OSError, RecursionError)):
            shutil.rmtree(tmp_path / "top")  # the control
        remove(tmp_path / "top")
    assert not (tmp_path / "top").exists()


def test_links_are_not_followed_and_modes_do_not_matter(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    outside.chmod(0o500)
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "folder").symlink_to(outside)
    (top / "a" / "b" / "up").symlink_to("..")
    (top / "a" / "b" / "file").symlink_to(outside / "kept")
    os.mkfifo(top / "fifo")
    for folder in (top / "a" / "b", top / "a", top):
        folder.chmod(0)
    remove(top)
    assert not os.path.lexists(top)
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o500


def test_two_at_once_do_not_hinder_each_other(tmp_path: Path) -> None:
    for number in range(3):
        make_deep(tmp_path / "top" if number == 0 else tmp_path / "top" / f"n{number}", 200)
    words = [sys.executable, "-c", REMOVE, str(tmp_path), "top"]
    both = [subprocess.Popen(words) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    assert not (tmp_path / "top").exists()


def test_a_folder_that_another_process_has_removed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    remove(tmp_path / "gone")
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.needs("wall")
def test_another_file_system_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "top" / "mounted").mkdir(parents=True)
    script = (
        f'mount -t tmpfs none "{tmp_path}/top/mounted" && touch "{tmp_path}/top/mounted/kept" &&'
        ' ! "$@" 2>&1 && test -e "$0"'
    )
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    kept = f"{tmp_path}/top/mounted/kept"
    remover = [sys.executable, "-c", REMOVE, str(tmp_path), "top"]
    done = subprocess.run([*words, kept, *remover], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "another file system" in done.stdout
    with suppress(FileNotFoundError):
        remove(tmp_path / "top")
    assert not (tmp_path / "top").exists()
