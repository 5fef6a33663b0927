"""Every way to create a project, with the real programs, from origins that are created once."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rootsd.core.model import ProjectKind
from support.repositories import git, make_repository

_LIBGIT2 = "import sys, pygit2; pygit2.clone_repository(*sys.argv[1:])"


class Origins:
    """The sources to clone, copy, and unpack. Each is created on first use."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        self._files = files
        (folder / "home").mkdir(parents=True)
        # Breezy has its own Python, which finds its library through the python3 on PATH.
        self.environment = {
            **os.environ,
            "HOME": str(folder / "home"),
            "PATH": f"/usr/bin:/bin:{os.environ['PATH']}",
            "USER": "tester",
            "EMAIL": "tester@example.org",
            "BRZ_EMAIL": "tester@example.org",
            "HGUSER": "tester",
        }

    def run(self, *command: str | Path, cwd: Path | None = None) -> None:
        """Run a program. It must succeed."""
        subprocess.run(
            command, cwd=cwd or self.folder, env=self.environment, check=True, capture_output=True
        )

    @cached_property
    def tree(self) -> Path:
        """Return a folder of plain files that a pack cannot make much smaller."""
        top = self.folder / "tree"
        rng = random.Random(7)  # noqa: S311 - the same files in each run
        for number in range(self._files):
            (top / f"d{number % 23}").mkdir(parents=True, exist_ok=True)
            (top / f"d{number % 23}" / f"f{number}").write_bytes(rng.randbytes(3_000))
        return top

    def _copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.tree, self.folder / name))

    @cached_property
    def git(self) -> Path:
        """Return a git repository of the files."""
        top = self._copy("up")
        git("init", top)
        git("add", ".", cwd=top)
        git("commit", "-m", "one", cwd=top)
        return top

    @cached_property
    def url(self) -> str:
        """Return its address. For it git makes a pack, as a server does."""
        return self.git.as_uri()

    @cached_property
    def sha256(self) -> Path:
        """Return a git repository with SHA-256 ids."""
        top = self._copy("sha256")
        git("init", "--object-format=sha256", top)
        git("add", ".", cwd=top)
        git("commit", "-m", "one", cwd=top)
        return top

    @cached_property
    def empty(self) -> Path:
        """Return a bare git repository without a commit."""
        git("init", "--bare", self.folder / "empty.git")
        return self.folder / "empty.git"

    @cached_property
    def super(self) -> Path:
        """Return a git repository with a submodule that has a submodule."""
        inner = make_repository(self.folder / "inner", files=20)
        middle = make_repository(self.folder / "middle")
        top = make_repository(self.folder / "super", files=50)
        for above, below in ((middle, inner), (top, middle)):
            git("submodule", "add", below, f"libs/{below.name}", cwd=above)
            git("commit", "-m", "submodule", cwd=above)
        return top

    @cached_property
    def outside(self) -> Path:
        """Return a complete clone, to be copied."""
        git("clone", self.url, self.folder / "outside")
        return self.folder / "outside"

    @cached_property
    def tar(self) -> Path:
        """Return an archive of the clone."""
        self.run("tar", "-C", self.outside, "-cf", "outside.tar", ".")
        return self.folder / "outside.tar"

    @cached_property
    def zip(self) -> Path:
        """Return a zip file of the clone."""
        self.run("zip", "-qry", self.folder / "outside.zip", ".", cwd=self.outside)
        return self.folder / "outside.zip"

    @cached_property
    def hg(self) -> Path:
        """Return a Mercurial repository of the files."""
        top = self._copy("hg")
        for command in (["init"], ["add", "-q"], ["commit", "-m", "one"]):
            self.run("hg", *command, cwd=top)
        return top

    @cached_property
    def svn(self) -> Path:
        """Return a Subversion repository of the files."""
        self.run("svnadmin", "create", "svn")
        self.run("svn", "import", "-q", "-m", "one", self.tree, (self.folder / "svn").as_uri())
        return self.folder / "svn"

    @cached_property
    def fossil(self) -> Path:
        """Return a Fossil repository of the files."""
        self.run("fossil", "init", "-A", "tester", "up.fossil")
        top = self._copy("fossil")
        for command in (["open", "-f", "../up.fossil"], ["addremove"]):
            self.run("fossil", *command, cwd=top)
        self.run("fossil", "commit", "--no-warnings", "-m", "one", cwd=top)
        return self.folder / "up.fossil"

    @cached_property
    def bzr(self) -> Path:
        """Return a Bazaar repository of the files, made by Breezy."""
        top = self._copy("bzr")
        for command in (["init"], ["add"], ["commit", "-m", "one"]):
            self.run("brz", *command, "-q", cwd=top)
        return top

    @cached_property
    def darcs(self) -> Path:
        """Return a darcs repository of the files."""
        top = self._copy("darcs")
        self.run("darcs", "init", cwd=top)
        self.run("darcs", "record", "-l", "-a", "-m", "one", "-A", "tester", cwd=top)
        return top

    def waiting(self, name: str) -> Path:
        """Return a complete clone, to be moved away."""
        git("clone", self.url, self.folder / "waiting" / name)
        return self.folder / "waiting" / name


Command = Callable[[Origins, Path], Sequence[str | Path]]


@dataclass(frozen=True, slots=True)
class Creation:
    """A way to create a project of `kind`: one process that ends when the project is complete.

    `has_files` says whether the project then has the files of `Origins.tree`. `in_parts` says
    whether the project exists while it is incomplete. `shows_interruption` says whether the disk
    shows that the process was killed.
    """

    name: str
    kind: ProjectKind
    command: Command
    needs: tuple[str, ...] = ()
    has_files: bool = True
    in_parts: bool = True
    shows_interruption: bool = True

    def destination(self, parent: Path, number: int) -> Path:
        """Return the path of the new project."""
        ending = ".git" if self.kind is ProjectKind.GIT_BARE else ""
        return parent / f"{self.name.replace(' ', '_').replace('/', '_')}-{number}{ending}"


def _clone(*options: str) -> Command:
    return lambda origins, to: ["git", "clone", *options, origins.url, to]


def _inside(*command: str) -> Callable[[Origins, Path], list[str | Path]]:
    """Return the shell command that creates the folder and runs a program in it."""
    line = 'mkdir "$1" && cd "$1" && shift && exec "$@"'
    return lambda origins, to: ["sh", "-c", line, "sh", to, *command]


def _worktree(origins: Origins, to: Path) -> Sequence[str | Path]:
    return ["git", "-C", origins.outside, "worktree", "add", "--detach", to]


def _bare_worktree(origins: Origins, to: Path) -> Sequence[str | Path]:
    bare = origins.folder / "bare-with-worktrees.git"
    if not bare.exists():
        git("clone", "--bare", origins.url, bare)
    return ["git", "-C", bare, "worktree", "add", "--detach", to]


def _separate(origins: Origins, to: Path) -> Sequence[str | Path]:
    data = origins.folder / "data" / to.name
    data.parent.mkdir(exist_ok=True)
    return ["git", "clone", f"--separate-git-dir={data}", origins.url, to]


def _move(origins: Origins, to: Path) -> Sequence[str | Path]:
    return ["mv", "-T", origins.waiting(to.name), to]


def _lightweight(origins: Origins, to: Path) -> Sequence[str | Path]:
    return ["brz", "checkout", "-q", "--lightweight", origins.bzr, to]


GIT = ProjectKind.GIT
WAYS = (
    Creation("clone", GIT, _clone()),
    Creation("clone --bare", ProjectKind.GIT_BARE, _clone("--bare"), has_files=False),
    Creation("clone --mirror", ProjectKind.GIT_BARE, _clone("--mirror"), has_files=False),
    Creation("clone -n", GIT, _clone("-n"), has_files=False),
    Creation("clone --depth", GIT, _clone("--depth=1")),
    Creation("clone --filter", GIT, _clone("--filter=blob:none")),
    Creation("clone --sparse", GIT, _clone("--sparse"), has_files=False),
    Creation("clone --reference", GIT, lambda o, to: [
        "git", "clone", "--reference", o.outside, o.url, to,
    ]),
    Creation("clone --separate-git-dir", GIT, _separate),
    Creation("clone of a path", GIT, lambda o, to: ["git", "clone", o.git, to]),
    Creation("clone of sha256", GIT, lambda o, to: ["git", "clone", o.sha256.as_uri(), to]),
    Creation("clone of nothing", GIT, lambda o, to: ["git", "clone", o.empty.as_uri(), to],
        has_files=False, in_parts=False),
    Creation("clone --recurse-submodules", GIT, lambda o, to: [
        "git", "clone", "--recurse-submodules", o.super.as_uri(), to,
    ], has_files=False),
    Creation("init", GIT, lambda _, to: ["git", "init", to], has_files=False, in_parts=False),
    Creation("worktree add", ProjectKind.GIT_WORKTREE, _worktree),
    Creation("worktree add of bare", ProjectKind.GIT_WORKTREE, _bare_worktree),
    Creation("libgit2", GIT, lambda o, to: [sys.executable, "-c", _LIBGIT2, o.url, to]),
    Creation("mv", GIT, _move, in_parts=False),
    Creation("cp -a", GIT, lambda o, to: ["cp", "-a", o.outside, to]),
    Creation("tar x", GIT, lambda o, to: _inside("tar", "-xf", str(o.tar))(o, to)),
    Creation("unzip", GIT, lambda o, to: ["unzip", "-q", o.zip, "-d", to], ("zip",)),
    Creation("rsync", GIT, lambda o, to: ["rsync", "-a", f"{o.outside}/", to], ("rsync",)),
    Creation("hg clone", ProjectKind.HG, lambda o, to: ["hg", "clone", "-q", "--pull", o.hg, to],
        ("hg",)),
    Creation("svn checkout", ProjectKind.SVN, lambda o, to: [
        "svn", "checkout", "-q", o.svn.as_uri(), to,
    ], ("svn",)),
    Creation("fossil open", ProjectKind.FOSSIL, lambda o, to: _inside(
        "fossil", "open", str(o.fossil))(o, to), ("fossil",)),
    Creation("brz branch", ProjectKind.BZR, lambda o, to: ["brz", "branch", "-q", o.bzr, to],
        ("brz",)),
    Creation("brz checkout", ProjectKind.BZR, _lightweight, ("brz",)),
    Creation("darcs clone", ProjectKind.DARCS, lambda o, to: ["darcs", "clone", "-q", o.darcs, to],
        ("darcs",), shows_interruption=False),
)  # fmt: skip
