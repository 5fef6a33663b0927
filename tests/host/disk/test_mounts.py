"""What is mounted where, and what cannot be watched."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rootsd.host.disk.mounts import (
    Mount,
    MountWatch,
    innermost,
    mount_points,
    mounts,
    remote_points,
    unwatchable_kind,
)
from support.subjects import OWN_MOUNTS, run_python

pytestmark = pytest.mark.needs("linux")


def test_the_root_and_proc_are_mounted() -> None:
    found = mounts()
    assert {b"/", b"/proc"} <= mount_points(found)


def test_where_nothing_is_told_there_are_no_points() -> None:
    assert mount_points(None) == frozenset()
    assert unwatchable_kind(b"/src", None) is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"/net/src", "nfs4"),
        (b"/net", "nfs4"),
        (b"/network", None),
        (b"/home/a", None),
        (b"/home/a/far/x", "fuse.sshfs"),
        (b"/covered/x", None),
        (b"/bindfs", "fuse"),
        (b"/windows", None),
        (b"/host/src", "virtiofs"),
    ],
)
def test_the_nearest_mount_above_counts_and_the_last_on_one_point(
    path: bytes, kind: str | None
) -> None:
    found = (
        Mount(b"/", b"ext4"),
        Mount(b"/net", b"nfs4"),
        Mount(b"/home/a/far", b"fuse.sshfs"),
        Mount(b"/bindfs", b"fuse"),
        Mount(b"/windows", b"fuseblk"),
        Mount(b"/host", b"virtiofs"),
        Mount(b"/covered", b"9p"),
        Mount(b"/covered", b"tmpfs"),
    )
    assert unwatchable_kind(path, found) == kind


def test_the_innermost_of_the_remote_mounts_holds_a_path() -> None:
    points = remote_points((Mount(b"/", b"ext4"), Mount(b"/n", b"nfs"), Mount(b"/n/f", b"fuse.x")))
    assert points == (b"/n", b"/n/f")
    assert innermost(points, b"/n/f/src") == b"/n/f"
    assert innermost(points, b"/n/other") == b"/n"
    assert innermost(points, b"/name") is None


TABLE = """
import os, subprocess, sys
from rootsd.host.disk.mounts import MountTable, mount_points
table, target = MountTable(), os.fsencode(sys.argv[1])
before = table.now()
print(target in mount_points(before), table.now() is before)
subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
print(target in mount_points(table.now()), table.remote())
table.close()
subprocess.run(["umount", target], check=True)
print(target in mount_points(table.now()))
"""


@pytest.mark.needs("namespaces")
def test_a_table_is_read_again_when_something_was_mounted(tmp_path: Path) -> None:
    told = "False True\nTrue ()\nTrue\n"
    assert run_python(OWN_MOUNTS, TABLE, tmp_path) == (told, "")


MOUNT = """
import os, subprocess, sys, threading
from rootsd.host.disk.mounts import MountWatch, mount_points, mounts
changed = threading.Event()
watch = MountWatch(changed.set)
watch.start()
subprocess.run(["mount", "-t", "tmpfs", "none", sys.argv[1]], check=True)
print(changed.wait(30), os.fsencode(sys.argv[1]) in mount_points(mounts()))
watch.stop()
"""


@pytest.mark.needs("namespaces")
def test_a_mount_on_a_name_with_blanks_is_seen_and_signalled(tmp_path: Path) -> None:
    target = tmp_path / "a b\n\\c"
    target.mkdir()
    assert run_python(OWN_MOUNTS, MOUNT, target) == ("True True\n", "")


def test_a_watch_that_never_began_can_be_stopped() -> None:
    before = set(threading.enumerate())
    watch = MountWatch(lambda: None)
    watch.stop()
    assert set(threading.enumerate()) == before
