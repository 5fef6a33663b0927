"""Changes of a parent as a whole, with real mounts, limits, and permissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.subprocesses import OWN_MOUNTS, UNPRIVILEGED
from support.watching_process import run_watching

pytestmark = pytest.mark.needs("linux")


@pytest.mark.needs("namespaces")
def test_an_unmounted_parent_is_unreachable_and_returns_by_itself(tmp_path: Path) -> None:
    """An image keeps its identity; a tmpfs would be another file system."""
    run_watching(OWN_MOUNTS, """
image, disk = top / "image", top / "disk"
image.write_bytes(b"")
os.truncate(image, 8_000_000)
sh("mkfs.ext4", "-q", image)
disk.mkdir()
sh("mount", "-o", "loop", image, disk)
fake_repository(disk / "one")
discovery = start(disk)
(seen,) = observed.all
for turn in range(2):
    unmount(disk)
    observed.wait(lambda: observed.all[-1] == ProjectUnreachable(raw(disk / "one")))
    sh("mount", "-o", "loop", image, disk)
    observed.wait(lambda: observed.all[-1] == seen)
# This is too quick to be noticed as gone, but each watch ends. While discovery checks a folder,
# the unmount fails, so try again.
fake_repository(disk / "deep" / "two")
observed.wait_for(raw(disk / "one"), raw(disk / "deep" / "two"))
again = f"until umount {disk}; do :; done; mount -o loop {image} {disk}"
subprocess.run(again, shell=True, check=True, stderr=subprocess.DEVNULL)
fake_repository(disk / "three")
fake_repository(disk / "deep" / "four")
observed.wait_for(*(raw(disk / name) for name in ("one", "three", "deep/two", "deep/four")))
discovery.stop()
unmount(disk)
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces")
def test_a_mount_over_a_parent_counts_and_the_covered_projects_return(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src = top / "src"
fake_repository(src / "one")
fake_repository(src / "two")
discovery = start(src)
before = dict(observed.live())
sh("mount", "-t", "tmpfs", "cover", src)
fake_repository(src / "one")
fake_repository(src / "three")
observed.wait_for(raw(src / "one"), raw(src / "three"))
assert observed.live()[raw(src / "one")].identity != before[raw(src / "one")].identity
assert ProjectUnreachable(raw(src / "two")) in observed.all
unmount(src)
observed.wait(lambda: observed.live() == before)
fake_repository(src / "four")
observed.wait_for(*before, raw(src / "four"))
discovery.stop()
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces")
def test_a_bind_mount_and_links_in_a_circle_make_no_second_project(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src, again = top / "src", top / "src" / "again"
one = fake_repository(src / "a" / "one")
(src / "a" / "loop").symlink_to(src)
(src / "a" / "self").symlink_to("self")
again.mkdir()
sh("mount", "--bind", src / "a", again)
discovery = start(src)
observed.wait_for(raw(one))
fake_repository(src / "a" / "two")
observed.wait_for(raw(one), raw(src / "a" / "two"))
assert len(observed.all) == 2
unmount(again)
sh("mount", "--bind", src / "a", again)
fake_repository(src / "three")
observed.wait_for(raw(one), raw(src / "a" / "two"), raw(src / "three"))
discovery.stop()
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces")
def test_two_parents_that_are_one_folder_both_get_events(tmp_path: Path) -> None:
    run_watching(OWN_MOUNTS, """
src, again = top / "src", top / "again"
(src / "a").mkdir(parents=True)
again.mkdir()
sh("mount", "--bind", src, again)
discovery = start(src, again)
fake_repository(src / "one")
fake_repository(again / "a" / "two")
both = [raw(place / name) for place in (src, again) for name in ("one", "a/two")]
observed.wait_for(*both)
shutil.rmtree(again / "one")
observed.wait_for(*(path for path in both if not path.endswith(b"one")))
discovery.stop()
unmount(again)
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces", "ext4")
def test_an_unmount_and_a_mount_in_one_batch_keep_the_watching(tmp_path: Path) -> None:
    """The folders are the same before and after, and interrupted work may continue."""
    run_watching(OWN_MOUNTS, """
image, disk, one = top / "image", top / "disk", top / "disk" / "one"
image.write_bytes(b"")
os.truncate(image, 8_000_000)
sh("mkfs.ext4", "-q", image)
disk.mkdir()
found = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, check=True)
device = found.stdout.strip()
sh("mount", device, disk)
fake_repository(one)
(one / ".git" / "index").rename(one / ".git" / "index.lock")
# Make all stamps count as old. Then discovery does not list unchanged folders again.
file_clock._SLACK_NS = -(10**12)
asked, mounted = threading.Event(), threading.Event()

def find_in_use(folders):
    asked.set()
    mounted.wait(HANG_S)
    return frozenset()

discovery = start(disk, find_in_use=find_in_use)
asked.wait(HANG_S)
unmount(disk)
sh("mount", device, disk)
mounted.set()
observed.wait(lambda: raw(one) in observed.live())
assert [seen.incomplete for seen in observed.all] == [IncompleteReason.NOT_CHECKED_OUT]
fake_repository(disk / "two")
observed.wait_for(raw(disk / "two"))
(one / ".git" / "index.lock").rename(one / ".git" / "index")
observed.wait_for(raw(one), raw(disk / "two"))
discovery.stop()
unmount(disk)
sh("losetup", "--detach", device)
""", tmp_path)  # fmt: skip


@pytest.mark.needs("setpriv")
def test_projects_of_a_parent_without_permission_are_unreachable_and_not_gone(
    tmp_path: Path,
) -> None:
    run_watching(UNPRIVILEGED, """
src = top / "src"
one = raw(fake_repository(src / "one"))
discovery = start(src)
(seen,) = observed.all
src.chmod(0)
observed.wait(lambda: observed.all[-1] == ProjectUnreachable(one))
observed.wait(lambda: state_of(src).state is ParentState.UNREADABLE)
src.chmod(0o700)
observed.wait(lambda: observed.all[-1] == seen)
discovery.stop()
assert ProjectGone(one) not in observed.all
src.chmod(0)
observed.all.clear()
# Discovery cannot even watch the parent now. The watch on the folder above reports the change.
discovery = start(src)
assert observed.all == []
src.chmod(0o700)
observed.wait(lambda: observed.all == [seen])
discovery.stop()
""", tmp_path)  # fmt: skip


@pytest.mark.needs("setpriv")
def test_a_repository_is_unreachable_if_it_or_its_folder_can_be_listed_and_not_entered(
    tmp_path: Path,
) -> None:
    """A project file beside `build` hides it, so it is read in another way."""
    run_watching(UNPRIVILEGED, """
src = top / "src"
inside = {src / "one": "", src / "folder": "two", src / "build": "three"}
projects = {folder: raw(fake_repository(folder / name)) for folder, name in inside.items()}
discovery = start(src)
before = dict(observed.live())
assert before.keys() == {*projects.values()}
for folder, project in projects.items():
    folder.chmod(0o444)
    observed.wait(lambda: observed.all[-1] == ProjectUnreachable(project))
    folder.chmod(0o755)
    observed.wait(lambda: observed.all[-1] == before[project])
discovery.stop()
""", tmp_path)  # fmt: skip


@pytest.mark.needs("setpriv")
def test_a_removal_below_an_unlistable_folder_is_found_with_it_or_at_the_next_listing(
    tmp_path: Path,
) -> None:
    """A project in it stays known as long as it can be read by its name."""
    run_watching(UNPRIVILEGED, """
folder, other = top / "src" / "folder", top / "src" / "other"
one, two = fake_repository(folder / "one"), fake_repository(other / "two")
discovery = start(top / "src")
for each in (folder, other):
    each.chmod(0o311)
observed.wait(lambda: state_of(top / "src").coverage is ScanCoverage.PARTIAL)
discovery.scan(None).result(HANG_S)
observed.wait_for(raw(one), raw(two))
folder.rename(top / "away")
observed.wait_for(raw(two))
shutil.rmtree(two)
other.chmod(0o755)
observed.wait_for()
discovery.stop()
assert {type(reported) for reported in observed.all} == {ProjectObserved, ProjectGone}
""", tmp_path)  # fmt: skip


@pytest.mark.needs("setpriv")
def test_a_parent_in_an_unreadable_folder_is_polled(
    tmp_path: Path,
) -> None:
    run_watching(UNPRIVILEGED, """
polling._SHORTEST_S = 0.2
src, inner = top / "src", top / "src" / "inner"
one = raw(fake_repository(inner / "one"))
src.chmod(0o311)
discovery = start(inner)
observed.wait_for(one)
inner.rename(top / "away")
observed.wait_for()
(top / "away").rename(inner)
observed.wait_for(one)
fake_repository(inner / "two")
observed.wait_for(one, raw(inner / "two"))
discovery.stop()
src.chmod(0o755)
""", tmp_path)  # fmt: skip


@pytest.mark.needs("setpriv", "namespaces")
def test_at_each_limit_of_the_kernel_the_parent_is_polled(tmp_path: Path) -> None:
    """A user namespace has its own limit, so this affects no other process."""
    run_watching(("unshare", "--user", "--map-root-user"), """
limits = Path("/proc/sys/user")
instances = (limits / "max_inotify_instances").read_text()
(limits / "max_inotify_instances").write_text("0")
none = top / "none"
none.mkdir()
discovery = start(none)
observed.wait(lambda: state_of(none).state is ParentState.POLLED)
assert "max_user_instances" in state_of(none).remedy
fake_repository(none / "one")
observed.wait_for(raw(none / "one"))
discovery.stop()
(limits / "max_inotify_instances").write_text(instances)
(limits / "max_inotify_watches").write_text("40")
observed.all.clear()
src = top / "src"
for number in range(60):
    (src / str(number)).mkdir(parents=True)
discovery = start(src)
observed.wait(lambda: state_of(src).state is ParentState.POLLED)
assert "sysctl fs.inotify.max_user_watches" in state_of(src).remedy
assert discovery.watches() <= 40
made = [raw(fake_repository(src / str(number) / "one")) for number in range(60)]
observed.wait_for(*made)
shutil.rmtree(src / "59")
observed.wait_for(*made[:-1])
discovery.stop()
""", tmp_path)  # fmt: skip


@pytest.mark.needs("namespaces")
def test_a_mount_moves_with_a_renamed_folder_above_it(tmp_path: Path) -> None:
    """The system reports no event for this. The mount point is no longer at the listed path."""
    run_watching(OWN_MOUNTS, """
src = top / "src"
disk = src / "old" / "disk"
disk.mkdir(parents=True)
sh("mount", "-t", "tmpfs", "none", disk)
fake_repository(disk / "inside")
discovery = start(src)
assert observed.live() == {}
(src / "old").rename(src / "new")
fake_repository(src / "old" / "disk" / "one")
fake_repository(src / "other")
observed.wait_for(raw(src / "old" / "disk" / "one"), raw(src / "other"))
(src / "new").rename(top / "away")
(top / "away").rename(src / "again")
fake_repository(src / "last")
observed.wait_for(*(raw(src / name) for name in ("old/disk/one", "other", "last")))
discovery.stop()
unmount(src / "again" / "disk")
""", tmp_path)  # fmt: skip
