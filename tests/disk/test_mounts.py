"""Which file systems are mounted, and which of them cannot be watched."""

from __future__ import annotations

import pytest

from rootsd.disk.mounts import (
    Mount,
    innermost,
    list_mounts,
    mount_containing,
    mount_points,
    remote_mount_points,
)

pytestmark = pytest.mark.needs("linux")


def test_the_root_and_proc_are_mounted() -> None:
    found = list_mounts()
    assert {b"/", b"/proc"} <= mount_points(found)


def test_unknown_mounts_give_no_mount_points() -> None:
    assert mount_points(None) == frozenset()
    assert mount_containing(b"/src", None) is None


@pytest.mark.parametrize(
    ("path", "is_remote"),
    [
        (b"/net/src", True),
        (b"/net", True),
        (b"/network", False),
        (b"/home/a", False),
        (b"/home/a/far/x", True),
        (b"/covered/x", False),
        (b"/bindfs", True),
        (b"/windows", False),
        (b"/host/src", True),
        (b"/Volumes/share/x", True),
        (b"/auto/x", False),
    ],
)
def test_the_nearest_mount_above_wins_and_the_last_on_one_point(
    path: bytes, *, is_remote: bool
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
        Mount(b"/Volumes/share", b"webdav", local=False),
        Mount(b"/auto", b"autofs", local=False),
    )
    mount = mount_containing(path, found)
    assert mount is not None
    assert mount.is_remote is is_remote


def test_the_innermost_of_the_remote_mounts_holds_a_path() -> None:
    points = remote_mount_points(
        (Mount(b"/", b"ext4"), Mount(b"/n", b"nfs"), Mount(b"/n/f", b"fuse.x"))
    )
    assert points == (b"/n", b"/n/f")
    assert innermost(points, b"/n/f/src") == b"/n/f"
    assert innermost(points, b"/n/other") == b"/n"
    assert innermost(points, b"/name") is None
