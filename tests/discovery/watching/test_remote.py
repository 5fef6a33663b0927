"""File systems that depend on another machine or program, and others that are not plain disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sizes import Sizes
from support.subprocesses import OWN_MOUNTS, run_python
from support.watching_process import run_watching

pytestmark = pytest.mark.needs("linux")


@pytest.mark.needs("namespaces", "bindfs")
def test_a_fuse_file_system_is_polled_and_changes_behind_it_are_found(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
polling._SHORTEST_S = 0.2
behind, far, near = top / "behind", top / "far", top / "near"
fake_repository(behind / "deep" / "one")
near.mkdir()
far.mkdir()
sh("bindfs", behind, far)
discovery = start(far, near)
assert state_of(far).state is ParentState.POLLED
assert state_of(near).state is ParentState.WATCHED
fake_repository(behind / "deep" / "two")
observed.wait_for(raw(far / "deep" / "one"), raw(far / "deep" / "two"))
shutil.rmtree(behind / "deep" / "one")
observed.wait_for(raw(far / "deep" / "two"))
# It goes, and comes where there was none before.
unmount(far)
observed.wait(lambda: observed.all[-1] == ProjectUnreachable(raw(far / "deep" / "two")))
sh("bindfs", behind, near)
observed.wait(lambda: state_of(near).state is ParentState.POLLED)
assert state_of(far).state is ParentState.WATCHED
fake_repository(behind / "three")
observed.wait_for(raw(near / "deep" / "two"), raw(near / "three"))
unmount(near)
observed.wait_for()
observed.wait(lambda: state_of(near).state is ParentState.WATCHED)
fake_repository(near / "four")
observed.wait_for(raw(near / "four"))
discovery.stop()
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces")
def test_overlay_and_tmpfs_are_watched_like_a_disk(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
over, memory, lower = top / "over", top / "memory", top / "lower"
memory.mkdir()
sh("mount", "-t", "tmpfs", "memory", memory)
for folder in (over, lower / "deep", memory / "upper", memory / "work", memory / "src"):
    folder.mkdir(parents=True)
fake_repository(lower / "one")
layers = f"lowerdir={lower},upperdir={memory}/upper,workdir={memory}/work"
sh("mount", "-t", "overlay", "over", "-o", layers, over)
discovery = start(over, memory / "src")
fake_repository(over / "deep" / "two")
fake_repository(memory / "src" / "three")
made = [raw(over / "deep" / "two"), raw(memory / "src" / "three")]
observed.wait_for(raw(over / "one"), *made)
shutil.rmtree(over / "one")
observed.wait_for(*made)
(over / "deep" / "two").rename(over / "one")
observed.wait_for(raw(over / "one"), raw(memory / "src" / "three"))
assert {report.state for report in observed.status} == {ParentState.WATCHED}
discovery.stop()
unmount(over)
unmount(memory)
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces", "bindfs")
def test_an_unresponsive_file_system_delays_nothing_else(tmp_path: Path) -> None:
    """The process behind it is stopped. A read there blocks until the process continues."""
    run_watching(OWN_MOUNTS, """
polling._SHORTEST_S = 0.2
behind, far, near = (top / name for name in ("behind", "far", "near"))
for folder in (far, near):
    folder.mkdir()
fake_repository(behind / "src" / "one")
fake_repository(behind / "stray")
served = subprocess.Popen(["bindfs", "-f", behind, far])
while not os.path.ismount(far):
    os.sched_yield()
discovery = start(far / "src", near)
discovery.probe(raw(far / "stray")).result(HANG_S)
one, stray = raw(far / "src" / "one"), raw(far / "stray")
observed.wait_for(one, stray)
served.send_signal(signal.SIGSTOP)
observed.wait(lambda: ProjectUnreachable(one) in observed.all)
observed.wait(lambda: "does not answer" in state_of(far / "src").reason)
discovery.recheck([stray])
fake_repository(near / "two")
observed.wait_for(raw(near / "two"))
discovery.scan(None).result(HANG_S)
assert ProjectGone(one) not in observed.all
again = Discovery(
    report=observed.report, on_status=observed.on_status, on_death=observed.on_death,
    dependencies=this_system(),
)
again.start([Parent(raw(far / "src")), Parent(raw(near))], {})
again.scan(None).result(HANG_S)
again.stop()
served.send_signal(signal.SIGCONT)
observed.wait(lambda: one in observed.live())
discovery.scan(None).result(HANG_S)
observed.wait_for(one, stray, raw(near / "two"))
discovery.stop()
unmount(far)
served.wait(HANG_S)
""", tmp_path)  # fmt: skip


_SILENT = """
import os, signal, subprocess, sys
from pathlib import Path
from support import preloaded
from support.person import HANG_GUARD, Person
from support.polling import until

top, restarts = Path(sys.argv[1]), sys.argv[2:]
person = Person(top)
behind, far = top / "behind", top / "far"
far.mkdir()
person.clone("near")
person.git("clone", "-q", str(person.origin), str(behind / "away"))
person.git("clone", "-q", str(person.origin), str(behind / "main"))
served = subprocess.Popen(["bindfs", "-f", behind, far])
until(lambda: os.path.ismount(far))

# On this disk, with its data over there.
person.git("-C", str(far / "main"), "worktree", "add", "-q", str(person.parent / "tree"))

def published():
    return sorted(person.names("ls", "--published"))

try:
    person.rootsd("up", str(person.parent), str(far))
    person.rootsd("approve", "--all", "--yes")
    # `--all` leaves out worktrees that git may not have made: this file system has no birth times.
    person.rootsd("approve", "tree")
    # On a busy machine, a file system of another process may answer too late at first.
    until(lambda: published() == ["away", "main", "near", "tree"])
    served.send_signal(signal.SIGSTOP)
    # Before each answer the roots are looked at: it is smaller by those that cannot be, once the
    # kernel has forgotten what it was reported of them a second before.
    until(lambda: published() == ["near"])
    person.clone("second")
    person.wait_until_listed("second", "pending")
    refused = person.run("approve", str(far / "other"))
    assert (refused.returncode, "no folder can be read" in refused.stderr) == (1, True), refused
    if restarts:
        person.rootsd("down")
        person.rootsd("up")
        until(lambda: published() == ["near"])
        assert "does not answer" in person.rootsd("status")
    served.send_signal(signal.SIGCONT)
    person.wait_until_listed("away", "ls", "--published")
    person.rootsd("scan")  # else it is seen by the next sweep, within a minute
    person.wait_until_listed("tree", "ls", "--published")
finally:
    served.send_signal(signal.SIGCONT)
    person.run("down")
    preloaded.close()
    until(lambda: not subprocess.run(["umount", far], capture_output=True).returncode)
    served.wait(HANG_GUARD)
print("done")
"""


@pytest.mark.needs("namespaces", "bindfs")
def test_an_unresponsive_root_is_withheld_and_the_daemon_continues(
    tmp_path: Path, sizes: Sizes
) -> None:
    """In a large run the daemon is also started beside it."""
    restart = sizes.pick(test=(), check=(Path("restart"),), soak=(Path("restart"),))
    assert run_python(OWN_MOUNTS, _SILENT, tmp_path, *restart) == ("done\n", "")
