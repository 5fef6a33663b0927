"""File systems that are mounted inside a parent: left out, or looked into, live."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.subprocesses import OWN_MOUNTS
from support.watching_process import run_watching

pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("namespaces")]


def test_a_mount_inside_a_parent_is_left_out_unless_configured(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src = top / "src"
fake_repository(src / "one")
(src / "disk").mkdir()
sh("mount", "-t", "tmpfs", "disk", src / "disk")
fake_repository(src / "disk" / "two")
discovery = start(src)
observed.wait_for(raw(src / "one"))
discovery.set_parents([Parent(raw(src), mounts=MountPolicy.LOCAL)])
observed.wait_for(raw(src / "one"), raw(src / "disk" / "two"))
discovery.set_parents([Parent(raw(src))])
discovery.scan(None).result(HANG_S)
fake_repository(src / "disk" / "three")
fake_repository(src / "four")
observed.wait(lambda: raw(src / "four") in observed.live())
assert raw(src / "disk" / "three") not in observed.live()
discovery.stop()
unmount(src / "disk")
""", tmp_path)  # fmt: skip


def test_a_mount_that_comes_and_goes_is_followed(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src, disk = top / "src", top / "src" / "group" / "disk"
fake_repository(src / "one")
fake_repository(disk / "below")
discovery = start(src, mounts=MountPolicy.LOCAL)
observed.wait_for(raw(src / "one"), raw(disk / "below"))
for turn in range(2):
    sh("mount", "-t", "tmpfs", "disk", disk)
    fake_repository(disk / "two")
    fake_repository(disk / "deep" / "three")
    observed.wait_for(raw(src / "one"), raw(disk / "two"), raw(disk / "deep" / "three"))
    # A mount in the mount, and a folder of a name that is skipped.
    (disk / "inner").mkdir()
    sh("mount", "-t", "tmpfs", "inner", disk / "inner")
    fake_repository(disk / "inner" / "env")
    fake_repository(disk / "node_modules" / "x")
    inner = raw(disk / "inner" / "env")
    observed.wait_for(raw(src / "one"), raw(disk / "two"), raw(disk / "deep" / "three"), inner)
    unmount(disk / "inner")
    observed.wait_for(raw(src / "one"), raw(disk / "two"), raw(disk / "deep" / "three"))
    shutil.rmtree(disk / "two")
    observed.wait_for(raw(src / "one"), raw(disk / "deep" / "three"))
    unmount(disk)
    observed.wait_for(raw(src / "one"), raw(disk / "below"))
# What was on the mount may return with it. So it is out of reach, and not gone.
assert ProjectUnreachable(raw(disk / "deep" / "three")) in observed.all
assert ProjectGone(raw(disk / "deep" / "three")) not in observed.all
discovery.stop()
""", tmp_path)  # fmt: skip


def test_a_mount_follows_the_rules_of_the_folder_that_it_is_in(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src = top / "src"
fake_repository(src / "repo")
points = [src / name for name in ("repo/data", "a/b/c/d/e", ".hidden", "tool/target", "old", "ok")]
for point in points:
    point.mkdir(parents=True)
    sh("mount", "-t", "tmpfs", "disk", point)
    fake_repository(point / "x")
(src / "tool" / "Cargo.toml").touch()
bound = fake_repository(top / "elsewhere")
for name in ("bound", ".github"):
    (src / name).mkdir()
    sh("mount", "--bind", bound, src / name)
parent = Parent(raw(src), skip=(b"old",), mounts=MountPolicy.LOCAL)
discovery = start()
discovery.set_parents([parent])
expected = [raw(src / name) for name in ("repo", "tool", "ok/x", "bound", ".github")]
observed.wait_for(*expected)
# The folder around a mount becomes a repository: the mount is in a project now.
(src / "group" / "disk").mkdir(parents=True)
sh("mount", "-t", "tmpfs", "disk", src / "group" / "disk")
fake_repository(src / "group" / "disk" / "y")
observed.wait_for(*expected, raw(src / "group" / "disk" / "y"))
fake_repository(src / "group")
observed.wait(lambda: raw(src / "group") in observed.live())
fake_repository(src / "group" / "disk" / "z")
fake_repository(src / "last")
observed.wait(lambda: raw(src / "last") in observed.live())
assert raw(src / "group" / "disk" / "z") not in observed.live()
discovery.stop()
for point in [*points, src / "bound", src / ".github", src / "group" / "disk"]:
    unmount(point)
""", tmp_path)  # fmt: skip


@pytest.mark.needs("bindfs")
def test_a_mount_that_does_not_respond_is_left_alone_until_it_does(tmp_path: Path) -> None:
    """Nothing is polled meanwhile, so that discovery asks first whether the mount responds."""
    run_watching(OWN_MOUNTS, """
polling._SHORTEST_S = 600.0
src, behind, far = top / "src", top / "behind", top / "src" / "far"
fake_repository(behind / "one")
far.mkdir(parents=True)
served = subprocess.Popen(["bindfs", "-f", behind, far])
until(lambda: os.path.ismount(far))
discovery = start(src, mounts=MountPolicy.LOCAL)
fake_repository(src / "two")
observed.wait_for(raw(src / "two"))
discovery.set_parents([Parent(raw(src), mounts=MountPolicy.ALL)])
observed.wait_for(raw(src / "two"), raw(far / "one"))
discovery.scan(None).result(HANG_S)
served.send_signal(signal.SIGSTOP)
discovery.scan(None).result(HANG_S)
observed.wait(lambda: observed.all[-1] == ProjectUnreachable(raw(far / "one")))
fake_repository(src / "four")
observed.wait(lambda: raw(src / "four") in observed.live())
served.send_signal(signal.SIGCONT)
fake_repository(behind / "three")
until(lambda: discovery.scan(None).result(HANG_S) and raw(far / "three") in observed.live())
observed.wait_for(*map(raw, (src / "two", src / "four", far / "one", far / "three")))
unmount(far)
observed.wait_for(raw(src / "two"), raw(src / "four"))
discovery.stop()
served.wait()
""", tmp_path)  # fmt: skip


def test_a_bind_mount_of_the_parent_in_itself_makes_no_second_project(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src = top / "src"
fake_repository(src / "one")
(src / "again").mkdir()
(src / "disk").mkdir()
sh("mount", "--bind", src, src / "again")
sh("mount", "-t", "tmpfs", "disk", src / "disk")
discovery = start(src, mounts=MountPolicy.LOCAL)
fake_repository(src / "disk" / "two")
fake_repository(src / "three")
observed.wait_for(*(raw(src / name) for name in ("one", "three", "disk/two")))
discovery.scan(None).result(HANG_S)
observed.wait_for(*(raw(src / name) for name in ("one", "three", "disk/two")))
discovery.stop()
unmount(src / "again")
unmount(src / "disk")
""", tmp_path)  # fmt: skip
