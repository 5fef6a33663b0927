"""rootsd follows a path in a project only if the lookup neither hangs nor mounts anything."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rootsd.core.project_kind import ProjectKind
from rootsd.disk.hung_mounts import FollowPolicy, HungMountDetector
from rootsd.disk.mounts import Mount, MountTable, mount_containing, remote_mount_points
from support.report_collector import HANG_S
from support.repositories import git, make_repository
from support.subprocesses import OWN_MOUNTS, run_python

LOCAL = Mount(b"/", b"ext4")
HOME, INDIRECT, ANN = Mount(b"/home", b"autofs"), Mount(b"/net", b"autofs"), b"/home/ann"


class Mounted(MountTable):
    """A mount table with the mounts of a test."""

    def __init__(self, *found: Mount) -> None:
        self._listed = found

    def holding(self, path: bytes) -> Mount | None:
        return mount_containing(path, self._listed)

    def remote(self) -> tuple[bytes, ...]:
        return remote_mount_points(self._listed)

    def automounts(self) -> tuple[bytes, ...]:
        return tuple(each.point for each in self._listed if each.is_automount)


def judge(*found: Mount) -> FollowPolicy:
    mounted = Mounted(LOCAL, *found)
    return FollowPolicy(mounted, HungMountDetector(mounted.remote, HANG_S, query=lambda _: None))


def test_a_path_on_a_local_disk_is_followed() -> None:
    assert judge(INDIRECT).may_follow(b"/src/one/.git")


@pytest.mark.parametrize("path", [b"/net/a.stranger/x", b"/net", b"/home/eve/x"])
def test_a_project_cannot_trigger_an_automount(path: bytes) -> None:
    assert not judge(INDIRECT, HOME, Mount(ANN, b"ext4")).may_follow(path)


def test_a_path_on_an_automount_that_is_mounted_is_followed() -> None:
    direct = Mount(b"/data", b"autofs"), Mount(b"/data", b"xfs")
    judged = judge(HOME, Mount(ANN, b"nfs4"), *direct)
    assert judged.may_follow(ANN + b"/one")
    assert judged.may_follow(b"/data/one")


_HANGING = """
import os, signal, subprocess, sys
from pathlib import Path
from rootsd.core.inputs import ProjectObserved, ProjectUnreachable
from rootsd.core.model import ProjectKind
from rootsd.disk.identity import identify
from rootsd.vcs.probe import probe, project_state
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.stages import PendingProject
from rootsd.vcs.git.worktrees import linked_worktrees, worktree_entries

top = Path(sys.argv[1])
behind, far, near = top / "behind", top / "far", os.fsencode(top / "near")
far.mkdir()
served = subprocess.Popen(["bindfs", "-f", behind, far])
while not os.path.ismount(far):
    os.sched_yield()
def state():
    with OpenProject(near) as project:
        return project_state(project, ProjectKind.GIT)
def observe():
    links = linked_worktrees(worktree_entries(near + b".links"))
    return identify(near), probe(near), state(), links
identity, seen, whole, links = observe()
assert identity.git_target is not None and isinstance(seen, ProjectObserved), seen
assert (seen.kind, len(links)) == (ProjectKind.GIT_WORKTREE, 1)
served.send_signal(signal.SIGSTOP)
try:
    try:
        identify(near)
    except TimeoutError:
        print("no answer")
    assert probe(near) == ProjectUnreachable(near)
    assert isinstance(state(), PendingProject)
    assert not linked_worktrees(worktree_entries(near + b".links"))
finally:
    served.send_signal(signal.SIGCONT)
from rootsd.disk import hung_mounts
while not hung_mounts.may_follow(os.fsencode(far)):
    os.sched_yield()
assert observe() == (identity, seen, whole, links)
subprocess.run(["umount", far], check=True)
served.wait(30)
"""


@pytest.mark.needs("namespaces", "bindfs")
def test_a_git_file_that_leads_to_a_hung_mount_does_not_block(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "behind" / "main")
    git("worktree", "add", tmp_path / "near", cwd=main)
    # git writes this if the repository is used through the other mount.
    admin = tmp_path / "far" / "main" / ".git" / "worktrees" / "near"
    (tmp_path / "near" / ".git").write_text(f"gitdir: {admin}\n")
    links = tmp_path / "near.links" / "tree"
    links.mkdir(parents=True)
    (links / "gitdir").write_text(f"{tmp_path}/far/tree/.git\n")
    tree = tmp_path / "behind" / "tree"
    git("worktree", "add", tree, cwd=main)
    (tree / ".git").write_text(f"gitdir: {admin.parent / 'tree'}\n")
    (main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{tmp_path}/far/tree/.git\n")
    assert run_python(OWN_MOUNTS, _HANGING, tmp_path) == ("no answer\n", "")


# In each of these repositories, a link replaces this folder.
_LINKED = (
    "git/.git",
    "git/.git/objects",
    "git/.git/refs",
    "git/.git/reftable",
    "git/.git/worktrees",
    "git/.git/modules",
    "bare/objects",
    "bare/worktrees",
    "jj/.jj",
    "jj/.jj/repo",
    "jj/.jj/repo/store",
    "jj/.jj/working_copy",
    "hg/.hg",
    "hg/.hg/store",
    "svn/.svn",
    "bzr/.bzr",
    "bzr/.bzr/checkout",
    "bzr/.bzr/repository",
    "darcs/_darcs",
    "darcs/_darcs/prefs",
    "darcs/_darcs/pristine.hashed",
    "pijul/.pijul",
    "pijul/.pijul/pristine",
)
# Of any other kind, a link replaces the marker.
_OTHERS = tuple(
    f"{kind}/{marker.decode()}"
    for kind in ProjectKind
    for marker in kind.markers
    if f"{kind}/{marker.decode()}" not in _LINKED
)

_LINKS = """
import os, signal, subprocess, sys, threading
from pathlib import Path
from rootsd.disk.markers import WalkRules, repository_kind
from rootsd.disk.reader import list_names
from rootsd.core.model import Parent
from rootsd.disk.walk import ProposalScope, Walker, WalkFolder
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.origin import read_branch, read_origin
from rootsd.vcs.probe import incomplete_reason, probe, progress_folders
from rootsd.vcs.git.worktrees import worktrees_folder

top, hung = Path(sys.argv[1]), Path(sys.argv[2])
served = subprocess.Popen(["bindfs", "-f", top / "behind", hung])
while not os.path.ismount(hung):
    os.sched_yield()
served.send_signal(signal.SIGSTOP)

def check_all():
    walker = Walker(WalkRules.of(Parent(os.fsencode(top / "projects"))))
    for path in sorted(map(os.fsencode, (top / "projects").iterdir())):
        walker.list_folder(WalkFolder(path, 1, ProposalScope.OPEN))
        probe(path)
        kind = repository_kind(list_names(path))
        progress_folders(path, kind)
        with OpenProject(path) as project:
            incomplete_reason(project, kind, None)
        read_origin(path, kind), read_branch(path, kind), worktrees_folder(path)
    print("ended")

def held_up(check, timeout):
    thread = threading.Thread(target=check, daemon=True)
    thread.start()
    thread.join(timeout)
    return thread.is_alive()

# Control: a thread that follows one of the links blocks until the server ends. The mount ends with
# this namespace; unmounting it here would race with the blocked thread.
followed = held_up(lambda: os.path.exists(top / "control" / "x"), 0.3)
print("held up" if followed else "the link leads nowhere", flush=True)
print("held up" if held_up(check_all, 60) else "done", flush=True)
served.kill()
served.wait(30)
"""


@pytest.mark.needs("namespaces", "bindfs")
def test_no_path_in_a_project_is_followed_to_a_hung_mount(tmp_path: Path) -> None:
    hung = tmp_path / "hung"
    for folder in (hung, tmp_path / "behind", tmp_path / "projects"):
        folder.mkdir()
    (tmp_path / "control").symlink_to(hung)
    for number, linked in enumerate((*_LINKED, *_OTHERS)):
        kind, _, inside = linked.partition("/")
        project = tmp_path / "projects" / f"{number}-{kind}"
        _make_like(kind, project)
        link = project / inside
        if link.is_dir():
            link.rename(tmp_path / f"was-{number}")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(hung / "x")
    leading = tmp_path / "projects" / "git-file"
    leading.mkdir()
    (leading / "way").symlink_to(hung)
    (leading / ".git").write_text("gitdir: way/x\n")
    output = run_python(OWN_MOUNTS, _LINKS, tmp_path, hung)
    assert output == ("held up\nended\ndone\n", "")


def _make_like(kind: str, folder: Path) -> None:
    """Create enough files of a repository of this kind that its readers try to read it."""
    if kind == "git":
        made = folder.parent.parent / "made"
        if not made.exists():
            make_repository(made)
            git("config", "submodule.active", ".", cwd=made)
        shutil.copytree(made, folder)
        (folder / ".gitmodules").write_text('[submodule "x"]\n\tpath = way/x\n')
        (folder / "way").symlink_to(folder.parent.parent / "hung")
        return
    if kind == "bare":
        git("init", "--bare", folder, cwd=folder.parent)
        return
    for file in {
        "jj": (".jj/repo/store/type", ".jj/repo/store/git_target", ".jj/working_copy/checkout"),
        "hg": (".hg/requires", ".hg/store/data", ".hg/dirstate"),
        "svn": (".svn/wc.db",),
        "bzr": (".bzr/branch-format", ".bzr/checkout/x", ".bzr/repository/x"),
        "darcs": ("_darcs/format", "_darcs/hashed_inventory", "_darcs/prefs/defaultrepo"),
        "pijul": (".pijul/config", ".pijul/pristine/db"),
    }.get(kind, ()):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(_NOTES.get(file, ""))


_NOTES = {
    ".jj/repo/store/git_target": "../../../../hung/x",
    "_darcs/hashed_inventory": f"pristine:0000000000-{'e3' * 32}\n",
}
