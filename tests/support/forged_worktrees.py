"""A folder of sources that an attacker fills, and the roots that clients would get from it.

Discovery, planning, and verification are the real ones, on the real kernel. Git makes the genuine
worktrees. A folder that "existed" before the attack is older than the two seconds that count.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rootsd.core.catalog import Catalog
from rootsd.core.decide import CREATION_WINDOW_NS
from rootsd.core.inputs import Approve, ConfirmedWorktree, Deny, Input
from rootsd.core.model import Actor, ActorKind, Project
from rootsd.core.paths import RefusedPlaces
from rootsd.core.plan import plan
from rootsd.disk.reader import birth_time_ns
from rootsd.vcs.verify import RootVerifier
from support.engine_harness import EngineHarness
from support.polling import until
from support.repositories import git, make_repository, raw
from support.system_parts import folder_safety

# CLOCK_REALTIME_COARSE of clock_gettime(2), by which the kernel stamps files: some ms behind.
_STAMPING_CLOCK = 5
PERSON = Actor(ActorKind.PERSON, "pts/1")


class PreparedFolders:
    """Folders made in advance. A folder keeps its birth time when it is renamed."""

    def __init__(self, place: Path, count: int) -> None:
        self._free = [place / f"old-{number}" for number in range(count)]
        for folder in self._free:
            folder.mkdir()
        self._newest = birth_time_ns(raw(self._free[-1])) or 0

    def move(self, to: Path) -> Path:
        """Move one of them to `to`, and return that path."""
        until(lambda: time.time_ns() > self._newest + CREATION_WINDOW_NS + 10**8)
        return self._free.pop().rename(to)


class ForgedWorktrees:
    """A parent `src` with the repository `tool` in it, and the catalog with both."""

    def __init__(self, world: EngineHarness, old: PreparedFolders) -> None:
        self.world = world
        self.old = old
        self.src = world.top
        self._verifier = RootVerifier(folder_safety())
        parents = tuple(parent.path for parent in world.parents)
        places = RefusedPlaces(b"/home/nobody", parents=parents)
        self.catalog = Catalog.of((), (), places, 1)
        self.tool = make_repository(self.src / "tool")
        self.head = self.head_of(self.tool)
        self._clock_error = timedelta()

    @staticmethod
    def head_of(repository: Path) -> str:
        """Return the commit that is checked out."""
        words = ["git", "rev-parse", "HEAD"]
        return subprocess.check_output(words, cwd=repository, text=True).strip()

    def existing(self, name: str) -> Path:
        """Return a plain folder of the user that existed long before the attack."""
        folder = self.old.move(self.src / name)
        (folder / "secret").write_text("mine\n")
        return folder

    def project(self, name: str) -> Path:
        """Return a project of the user that existed long before the attack."""
        folder = self.existing(name)
        (folder / "package.json").write_text("{}\n")
        return folder

    def set_clock_back(self, *, days: int) -> None:
        """Date all further orders before the existing files."""
        self._clock_error = -timedelta(days=days)

    def see(self) -> None:
        """Process all reports of discovery."""
        self.take(self.world.take())

    def approve(self, path: Path, *, confirm: Iterable[Path] = ()) -> None:
        """Approve the project at `path` with the worktrees that the person confirms."""
        self.see()
        self.world.engine.scan_worktrees((raw(path),))
        self.see()
        trees = tuple(
            ConfirmedWorktree(project.path, project.observed.identity)
            for project in (self.known(tree) for tree in confirm)
            if project.observed.identity is not None
        )
        identity = self.known(path).observed.identity
        self.take([Approve(raw(path), identity, PERSON, worktrees=trees)])
        approved_ns = time.time_ns()
        until(lambda: time.clock_gettime_ns(_STAMPING_CLOCK) > approved_ns)

    def approve_with_all(self, path: Path) -> None:
        """Approve the project at `path` and confirm each worktree that links back to it."""
        self.see()
        self.world.engine.scan_worktrees((raw(path),))
        self.see()
        linked = self.catalog.worktrees.get(raw(path), ())
        self.approve(path, confirm=[Path(os.fsdecode(tree)) for tree in linked])

    def deny(self, path: Path) -> None:
        """Deny the project at `path`."""
        self.take([Deny(raw(path), PERSON)])

    def known(self, path: Path) -> Project:
        """Return the catalog's project at `path`."""
        return self.catalog.projects[raw(path)]

    def reported(self) -> set[str]:
        """Return the names below `src` that a client gets now, each root verified.

        It asks first without discovery, which may be late, and then with it. The second answer
        must not have more names.
        """
        before = self._verified()
        self.see()
        self.world.engine.scan_worktrees((raw(self.tool),))
        self.see()
        after = self._verified()
        return {self.world.name(path) for path in before | after}

    def _verified(self) -> set[bytes]:
        while True:
            catalog = self.catalog
            self.take(self._verifier.verify(catalog.identities))
            if self.catalog is catalog or self.catalog == catalog:
                return set(self.catalog.roots)

    def take(self, inputs: Iterable[Input]) -> None:
        """Process orders and reports."""
        now = datetime.now(UTC) + self._clock_error
        self.catalog = plan(self.catalog, tuple(inputs), now).catalog

    # The files that an attacker writes

    def entry(self, work: Path, name: str = "p", main: Path | None = None) -> Path:
        """Create a repository's entry that links back to `work`, complete as git's own; return its
        folder.
        """
        repository = (main or self.tool) / ".git"
        entry = repository / "worktrees" / name
        entry.mkdir(parents=True)
        (entry / "HEAD").write_text(f"{self.head}\n")
        (entry / "commondir").write_text("../..\n")
        (entry / "gitdir").write_text(f"{work}/.git\n")
        (entry / "index").write_bytes((repository / "index").read_bytes())
        return entry

    def link(self, work: Path, target: Path | str) -> None:
        """Write the `.git` file of `work`."""
        (work / ".git").write_text(f"gitdir: {target}\n")

    def forge(self, work: Path, name: str = "p") -> Path:
        """Link `work` and the approved repository in both directions; return the entry."""
        entry = self.entry(work, name)
        self.link(work, entry)
        return entry

    def new(self, name: str) -> Path:
        """Return a folder that an archive just created."""
        folder = self.src / name
        folder.mkdir(parents=True)
        (folder / "README").write_text("new\n")
        return folder

    def git_adds(self, path: Path, *, main: Path | None = None) -> Path:
        """Let git add a worktree, and return its folder."""
        git("worktree", "add", "--detach", path, cwd=main or self.tool)
        return path
