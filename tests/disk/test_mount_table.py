"""The mount table is current after each change, and each change is reported."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rootsd.disk import mounts
from rootsd.disk.mounts import Mount, MountTable, MountWatch
from support.subprocesses import OWN_MOUNTS, run_python

pytestmark = pytest.mark.needs("linux")


def test_without_change_reports_mounts_are_listed_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This is as on macOS: the walk has no list of mount points, but remote mounts are known."""
    monkeypatch.setattr(mounts, "MOUNTINFO", b"/nowhere")
    monkeypatch.setattr(mounts, "read_mountinfo", lambda: None)
    share = Mount(b"/Volumes/share", b"smbfs", local=False)
    mounted = [Mount(b"/", b"apfs"), Mount(b"/net", b"autofs", local=False)]
    table = MountTable(lambda: tuple(mounted))
    assert (table.now(), table.remote(), table.automounts()) == (None, (), (b"/net",))
    mounted.append(share)
    assert table.remote() == (share.point,)
    assert table.holding(b"/Volumes/share/src") is share
    assert table.holding(b"/Users/ann") is mounted[0]


CHANGES = """
import os, subprocess, sys, threading
from rootsd.disk.mounts import MountTable, MountWatch, list_mounts, mount_points
top = os.fsencode(sys.argv[1])
def mount(point):
    os.makedirs(point)
    subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
changed = threading.Event()
watch = MountWatch(changed.set)
watch.start()
table, odd = MountTable(), top + b"/a b\\n\\\\c"
before = table.now()
print(odd in mount_points(before), table.now() is before)
mount(odd)
print(changed.wait(30), odd in mount_points(list_mounts()))
watch.stop()
print(odd in mount_points(table.now()), table.remote())
subprocess.run(["umount", odd], check=True)
print(odd in mount_points(table.now()))
mount(top + b"/old/disk")
before = table.now()
print(table.has_moved(), table.now() is before)
print(table.are_below([top + b"/old"]), table.are_below([top + b"/new"]))
os.rename(top + b"/old", top + b"/new")
print(table.now() is before, table.has_moved(), top + b"/new/disk" in mount_points(table.now()))
subprocess.run(["umount", top + b"/new/disk"], check=True)
"""


@pytest.mark.needs("namespaces")
def test_the_table_is_current_and_a_rename_of_what_holds_mounts_is_found_on_request(
    tmp_path: Path,
) -> None:
    """The name of a mount point may have any bytes."""
    assert run_python(OWN_MOUNTS, CHANGES, tmp_path) == (
        "False True\nTrue True\nTrue ()\nFalse\nFalse True\nTrue False\nTrue True True\n",
        "",
    )


def test_a_watch_that_was_never_started_can_be_stopped() -> None:
    before = set(threading.enumerate())
    watch = MountWatch(lambda: None)
    watch.stop()
    assert set(threading.enumerate()) <= before
