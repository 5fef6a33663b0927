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


TABLE = """
import os, subprocess, sys
from rootsd.disk.mounts import mount_points
from rootsd.disk.mounts import MountTable
table, target = MountTable(), os.fsencode(sys.argv[1])
before = table.now()
print(target in mount_points(before), table.now() is before)
subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
print(target in mount_points(table.now()), table.remote())
subprocess.run(["umount", target], check=True)
print(target in mount_points(table.now()))
"""


@pytest.mark.needs("namespaces")
def test_the_table_is_read_again_after_a_mount(tmp_path: Path) -> None:
    output = "False True\nTrue ()\nFalse\n"
    assert run_python(OWN_MOUNTS, TABLE, tmp_path) == (output, "")


RENAMED = """
import os, subprocess, sys
from rootsd.disk.mounts import mount_points
from rootsd.disk.mounts import MountTable
top = os.fsencode(sys.argv[1])
os.makedirs(top + b"/old/disk")
subprocess.run(["mount", "-t", "tmpfs", "none", top + b"/old/disk"], check=True)
table = MountTable()
before = table.now()
print(table.has_moved(), table.now() is before)
print(table.are_below([top + b"/old"]), table.are_below([top + b"/new"]))
os.rename(top + b"/old", top + b"/new")
print(table.now() is before, table.has_moved(), top + b"/new/disk" in mount_points(table.now()))
subprocess.run(["umount", top + b"/new/disk"], check=True)
"""


@pytest.mark.needs("namespaces")
def test_mounts_below_a_renamed_folder_are_found_on_request(tmp_path: Path) -> None:
    output = "False True\nTrue False\nTrue True True\n"
    assert run_python(OWN_MOUNTS, RENAMED, tmp_path) == (output, "")


MOUNT = """
import os, subprocess, sys, threading
from rootsd.disk.mounts import mount_points
from rootsd.disk.mounts import list_mounts
from rootsd.disk.mounts import MountWatch
changed = threading.Event()
watch = MountWatch(changed.set)
watch.start()
subprocess.run(["mount", "-t", "tmpfs", "none", sys.argv[1]], check=True)
print(changed.wait(30), os.fsencode(sys.argv[1]) in mount_points(list_mounts()))
watch.stop()
"""


@pytest.mark.needs("namespaces")
def test_a_mount_point_with_spaces_is_listed_and_reported(tmp_path: Path) -> None:
    target = tmp_path / "a b\n\\c"
    target.mkdir()
    assert run_python(OWN_MOUNTS, MOUNT, target) == ("True True\n", "")


def test_a_watch_that_was_never_started_can_be_stopped() -> None:
    before = set(threading.enumerate())
    watch = MountWatch(lambda: None)
    watch.stop()
    assert set(threading.enumerate()) <= before
