"""Create a forest of repositories to scan and to watch, and record its contents.

Layouts: 60 % host/owner/repo (as ghq does), 25 % flat, 15 % client/project/repo. A third of the
repositories contain a node_modules, .venv, or target; one in 50 is a monorepo. Beside them are
plain folders, loose projects, bare repositories, worktrees, a submodule, other VCS, loops of
links, unreadable folders, and names that are not UTF-8. All other repositories share one real
`.git` with its objects as hard links; each has its own index, as git would have written it there.

Run: python tests/bench/forest.py FOLDER [--repositories N] [--heavy N] [--lean] [--sources N]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

PROJECT_FILES = (
    b"pyproject.toml", b"package.json", b"Cargo.toml", b"go.mod", b"pom.xml", b"Gemfile",
)  # fmt: skip
HEAVY_NAMES = (b"node_modules", b".venv", b"target")
HOSTS = (b"github.com", b"gitlab.com", b"git.example.org")
# Of a hundred, one each is none of git's.
# What is committed: one file in each repository, of this content.
README = b"README.md"
ABOUT = b"one of many\n"
# gitformat-index(5), version 2: header; change and modification time, device, inode, mode, owner,
# group and size of a file, the id of its content, the length of its name.
INDEX_HEAD = struct.Struct(">4sII")
INDEX_ENTRY = struct.Struct(">10I20sH")
WORD = 0xFFFFFFFF
MOST_LINKS = 60_000  # ext4 allows 65,000 names of a file
OTHER_VCS = {97: b".hg/store", 98: b".svn", 99: b"_darcs"}


@dataclass(frozen=True, slots=True)
class Plan:
    """`repositories` how many; `heavy` folders on average in each heavy tree, 0 for none.

    `sources` is the most folders of sources in each repository. With 0, its `.git` is as small as
    possible, too: one pack and no logs.
    """

    repositories: int = 500
    heavy: int = 60
    sources: int = 8
    seed: int = 7


@dataclass(slots=True)
class Forest:
    """What was made: paths of repositories (any VCS, bare too) and of loose projects."""

    top: bytes
    repositories: set[bytes] = field(default_factory=set)
    loose: set[bytes] = field(default_factory=set)
    folders: int = 0


class _Planter:
    def __init__(self, top: bytes, plan: Plan, template: Path) -> None:
        self.forest = Forest(top)
        self.plan = plan
        self.random = random.Random(plan.seed)  # noqa: S311 - a forest that can be made again
        self.template = os.fsencode(template)
        self.made = 0

    def folder(self, path: bytes) -> bytes:
        try:
            os.mkdir(path)
        except FileExistsError:
            return path
        except FileNotFoundError:
            self.folder(os.path.dirname(path))
            os.mkdir(path)
        self.forest.folders += 1
        return path

    def file(self, path: bytes) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))

    def git_folder(self, path: bytes) -> None:
        for folder, _, files in os.walk(self.template):
            inside = os.path.relpath(folder, self.template)
            target = self.folder(os.path.normpath(os.path.join(path, inside)))
            for name in files:
                if name == b"index":
                    continue
                os.link(os.path.join(folder, name), os.path.join(target, name))

    def repository(self, path: bytes) -> None:
        number, self.made = self.made, self.made + 1
        if number % MOST_LINKS == MOST_LINKS - 1:
            template = os.fsdecode(self.template)
            self.template = os.fsencode(shutil.copytree(template, f"{template}2"))
        self.folder(path)
        about = path + b"/" + README
        with open(about, "wb") as file:
            file.write(ABOUT)
        other = OTHER_VCS.get(number % 100)
        if other is None:
            self.git_folder(path + b"/.git")
            with open(path + b"/.git/index", "wb") as file:
                file.write(index_of(os.stat(about)))
        else:
            self.folder(path + b"/" + other)
        self.forest.repositories.add(path)
        self.file(path + b"/" + PROJECT_FILES[number % len(PROJECT_FILES)])
        for inside in range(self.random.randint(min(2, self.plan.sources), self.plan.sources)):
            self.file(self.folder(path + b"/src/p%d" % inside) + b"/a.py")
        if self.plan.heavy and number % 3 == 0:
            self.heavy(path + b"/" + HEAVY_NAMES[number // 3 % 3])
        if number % 50 == 7:
            for member in range(self.random.randint(20, 60)):
                self.file(self.folder(path + b"/packages/w%d" % member) + b"/package.json")

    def heavy(self, path: bytes) -> None:
        for module in range(max(2, int(self.random.expovariate(1 / self.plan.heavy)))):
            inside = self.folder(path + b"/m%d" % module)
            self.file(inside + b"/package.json")

    def plant(self) -> None:
        count, top = self.plan.repositories, self.forest.top
        for number in range(count):
            share = number / count
            if share < 0.60:
                host = HOSTS[number // 8 % len(HOSTS)]
                self.repository(top + b"/ghq/%s/owner%d/r%d" % (host, number // 8, number))
            elif share < 0.85:
                self.repository(top + b"/flat/r%d" % number)
            else:
                client = number // 12
                self.repository(top + b"/clients/c%d/p%d/r%d" % (client, number // 4, number))
        for number in range(count // 5):
            self.file(self.folder(top + b"/docs/y%d/n%d" % (number % 20, number)) + b"/a.pdf")
        for number in range(max(3, count // 50)):
            loose = self.folder(top + b"/scratch/l%d" % number)
            self.file(loose + b"/" + PROJECT_FILES[number % 4])
            self.forest.loose.add(loose)
        self.oddities(self.folder(top + b"/odd"))

    def oddities(self, odd: bytes) -> None:
        os.symlink(b"..", odd + b"/loop")
        os.symlink(b"loop2", odd + b"/loop1")
        os.symlink(b"loop1", odd + b"/loop2")
        for name in (b"caf\xe9", b"\xff\xfe", b"new\nline"):
            self.repository(odd + b"/" + name)
        for number in range(5):
            bare = odd + b"/bare%d.git" % number
            self.git_folder(bare)
            self.forest.repositories.add(bare)
        os.chmod(self.folder(odd + b"/unreadable"), 0)
        self.linked(self.folder(odd + b"/linked"))

    def linked(self, inside: bytes) -> None:
        """A repository with worktrees beside it, and with a submodule, which is no project."""
        main, trees = inside + b"/main", [inside + b"/tree%d" % number for number in range(5)]
        git(b"clone", b"-q", self.template, main)
        for tree in trees:
            git(b"-C", main, b"worktree", b"add", b"-q", tree)
        allow = b"protocol.file.allow=always"
        git(b"-C", main, b"-c", allow, b"submodule", b"--quiet", b"add", self.template, b"sub")
        self.forest.repositories.update((main, *trees))
        self.forest.folders += sum(len(below) for _, below, _ in os.walk(inside))


def index_of(about: os.stat_result) -> bytes:
    """The index that git writes once it has checked out that one file."""
    times = (divmod(ns, 10**9) for ns in (about.st_ctime_ns, about.st_mtime_ns))
    found = (about.st_dev, about.st_ino, about.st_mode, about.st_uid, about.st_gid, about.st_size)
    content = hashlib.sha1(b"blob %d\0%b" % (len(ABOUT), ABOUT), usedforsecurity=False).digest()
    numbers = (number & WORD for number in (*(part for both in times for part in both), *found))
    entry = INDEX_ENTRY.pack(*numbers, content, len(README)) + README
    padded = entry.ljust(len(entry) // 8 * 8 + 8, b"\0")
    index = INDEX_HEAD.pack(b"DIRC", 2, 1) + padded
    return index + hashlib.sha1(index, usedforsecurity=False).digest()


def git(*words: str | bytes | Path) -> None:
    """Run git as nobody in particular has it configured."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "a@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *words], env=environment, check=True)


def make_template(folder: Path, plan: Plan) -> Path:
    """A real `.git` of a repository with one commit."""
    (folder / os.fsdecode(README)).write_bytes(ABOUT)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        git("-C", folder, "-c", "init.defaultBranch=main", *words)
    shutil.rmtree(folder / ".git" / "hooks", ignore_errors=True)
    if not plan.sources:
        git("-C", folder, "gc", "-q")
        for name in ("branches", "info", "logs"):
            shutil.rmtree(folder / ".git" / name, ignore_errors=True)
    return folder / ".git"


def make_forest(top: Path, plan: Plan) -> Forest:
    """Make the forest in `top`, a new folder."""
    top.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=top.parent) as folder:
        planter = _Planter(os.fsencode(top), plan, make_template(Path(folder), plan))
        planter.plant()
    return planter.forest


def main() -> None:
    """Make a forest to play with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repositories", type=int, default=500)
    parser.add_argument("--heavy", type=int, default=60, help="folders in each heavy tree")
    parser.add_argument("--lean", action="store_true", help="no heavy trees")
    parser.add_argument("--sources", type=int, default=8, help="most source folders in each")
    options = parser.parse_args()
    plan = Plan(options.repositories, 0 if options.lean else options.heavy, options.sources)
    forest = make_forest(options.folder.resolve(), plan)
    sys.stdout.write(f"{len(forest.repositories)} repositories, {forest.folders} folders\n")


if __name__ == "__main__":
    main()
