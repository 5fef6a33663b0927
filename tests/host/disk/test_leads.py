"""What the text of a project names is looked at only where that ends, and mounts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rootsd.host.disk.answering import Answering
from rootsd.host.disk.leads import Leads
from rootsd.host.disk.mounts import Mount, holding, remote_points
from rootsd.host.disk.mounttable import MountTable
from support.repos import git, make_repository
from support.subjects import OWN_MOUNTS, run_python

LOCAL = Mount(b"/", b"ext4")
HOME, INDIRECT, ANN = Mount(b"/home", b"autofs"), Mount(b"/net", b"autofs"), b"/home/ann"


class Mounted(MountTable):
    """What is mounted according to a test."""

    def __init__(self, *found: Mount) -> None:
        self._listed = found

    def holding(self, path: bytes) -> Mount | None:
        return holding(path, self._listed)

    def remote(self) -> tuple[bytes, ...]:
        return remote_points(self._listed)

    def automounts(self) -> tuple[bytes, ...]:
        return tuple(each.point for each in self._listed if each.is_automount)


def judge(*found: Mount, ask: Callable[[bytes], None] = lambda _: None) -> Leads:
    mounted = Mounted(LOCAL, *found)
    return Leads(mounted, Answering(mounted.remote, patience_s=0.02, ask=ask))


def test_a_local_disk_is_followed_to() -> None:
    assert judge(INDIRECT).may_follow(b"/src/one/.git")


@pytest.mark.parametrize("path", [b"/net/a.stranger/x", b"/net", b"/home/eve/x"])
def test_nothing_is_mounted_because_a_project_names_it(path: bytes) -> None:
    assert not judge(INDIRECT, HOME, Mount(ANN, b"ext4")).may_follow(path)


def test_what_was_mounted_by_somebody_else_is_followed_to() -> None:
    direct = Mount(b"/data", b"autofs"), Mount(b"/data", b"xfs")
    judged = judge(HOME, Mount(ANN, b"nfs4"), *direct)
    assert judged.may_follow(ANN + b"/one")
    assert judged.may_follow(b"/data/one")


_HANGING = """
import os, signal, subprocess, sys
from pathlib import Path
from rootsd.core.inputs import Sighted, Unreachable
from rootsd.core.model import ProjectKind
from rootsd.host.vcs.complete import state_of
from rootsd.host.disk.identity import identify
from rootsd.host.disk.probe import probe
from rootsd.host.vcs.stages import Pending
from rootsd.host.vcs.worktrees import links_in

top = Path(sys.argv[1])
behind, far, near = top / "behind", top / "far", os.fsencode(top / "near")
far.mkdir()
served = subprocess.Popen(["bindfs", "-f", behind, far])
while not os.path.ismount(far):
    os.sched_yield()
def see():
    return identify(near), probe(near), state_of(near, ProjectKind.GIT), links_in(near + b".links")
identity, seen, state, links = see()
assert identity.git_target is not None and isinstance(seen, Sighted), seen
assert (seen.kind, len(links.trees)) == (ProjectKind.GIT_WORKTREE, 1)
served.send_signal(signal.SIGSTOP)
try:
    try:
        identify(near)
    except TimeoutError:
        print("no answer")
    assert probe(near) == Unreachable(near)
    assert isinstance(state_of(near, ProjectKind.GIT), Pending)
    assert not links_in(near + b".links").trees
finally:
    served.send_signal(signal.SIGCONT)
from rootsd.host.disk import leads
while not leads.may_follow(os.fsencode(far)):
    os.sched_yield()
assert see() == (identity, seen, state, links)
subprocess.run(["umount", far], check=True)
served.wait(30)
"""


@pytest.mark.needs("namespaces", "bindfs")
def test_a_git_file_that_leads_to_where_nobody_answers_holds_nobody_up(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "behind" / "main")
    git("worktree", "add", tmp_path / "near", cwd=main)
    # As git writes it where the repository is used through the other mount.
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
