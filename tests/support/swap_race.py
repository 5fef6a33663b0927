"""Swap a folder for a link out of the project, as fast as possible, while others read there.

The files inside and outside differ, so each read shows which of them it saw.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from rootsd.core.inputs import ProjectObserved
from rootsd.core.model import GitEntry, Identity, IncompleteReason, NestedPolicy, ProjectKind
from rootsd.disk.identity import identify
from rootsd.disk.markers import WalkRules
from rootsd.disk.reader import list_names, read_small
from rootsd.disk.walk import Walker, WalkFolder
from rootsd.vcs.probe import probe
from support.repositories import fake_repository, raw

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_PR_SET_PDEATHSIG = 1
_SECRET = b"secret"


class Target(StrEnum):
    """The reader, and the swapped folder."""

    FILE = "a file is read, the folder that holds it is swapped"
    NAMES = "a folder is listed, itself is swapped"
    GIT_FOLDER = "a project is probed, its .git is swapped"
    PROJECT = "a project is probed, itself is swapped"
    ABOVE = "a project is probed, the folder above it is swapped"
    WALK = "a parent is walked and what was found is probed, a folder in it is swapped"
    CHECKED = "the control: realpath and commonpath, then open"


class SwapRace:
    """A parent with a project, and similar files outside.

    Outside is a repository whose checkout was interrupted; inside is a complete one. The swapped
    folder is `victim`; the link that replaces it lies beside it.
    """

    def __init__(self, top: Path, reading: Target) -> None:
        self._reading = reading
        self.parent = top / "parent"
        self.project = self.parent / "group" / "project"
        self.outside = top / "outside"
        fake_repository(self.project)
        self._made_outside(self.outside / "group" / "project")
        inner = self._swapped()
        self.victim = self.parent / inner
        self.link = self.victim.with_name("evil-link")
        self.link.symlink_to(self.outside / inner)
        self._identity = identify(raw(self.project))

    def _made_outside(self, project: Path) -> None:
        fake_repository(project)
        (project / ".git" / "index").rename(project / ".git" / "index.lock")
        (project / "secret").write_bytes(_SECRET)
        (project / ".hg").mkdir()
        fake_repository(project.parent / "more")

    def _swapped(self) -> Path:
        match self._reading:
            case Target.GIT_FOLDER:
                return Path("group", "project", ".git")
            case Target.PROJECT | Target.FILE | Target.NAMES | Target.CHECKED:
                return Path("group", "project")
            case Target.ABOVE | Target.WALK:
                return Path("group")

    def look(self) -> Callable[[], bool]:
        """Return a function that reads once and says whether it read outside."""
        match self._reading:
            case Target.FILE:
                file = raw(self.project / "secret")
                return lambda: read_small(file, 64) is not None
            case Target.NAMES:
                folder = raw(self.project)
                return lambda: b"secret" in list_names(folder)
            case Target.CHECKED:
                return self._look_as_most_do
            case Target.WALK:
                return self._walk
            case Target.GIT_FOLDER | Target.PROJECT | Target.ABOVE:
                return lambda: self._is_outside(raw(self.project))

    def move_outside_in(self) -> None:
        """Make the files inside like those outside."""
        outside = self.link.resolve()
        shutil.rmtree(self.victim)
        outside.rename(self.victim)

    def _is_outside(self, path: bytes) -> bool:
        seen = probe(path)
        return isinstance(seen, ProjectObserved) and (
            seen.kind not in (ProjectKind.GIT, ProjectKind.PROJECT)
            or not _same(seen.identity, self._identity)
            # A link in the place of `.git` may lead outside, but then the identity says so.
            or (seen.incomplete is IncompleteReason.NOT_CHECKED_OUT and not _is_linked(seen))
        )

    def _walk(self) -> bool:
        walker = Walker(WalkRules(depth=3, nested=NestedPolicy.NONE))
        scan = walker.walk(WalkFolder(raw(self.parent), 3, top=True))
        found = [listing.place.path for listing in scan.listings if listing.kind is not None]
        return any(self._is_outside(path) for path in found)

    def _look_as_most_do(self) -> bool:
        file = os.fspath(self.project / "secret")
        parent = os.fspath(self.parent)
        try:
            if os.path.commonpath([parent, os.path.realpath(file)]) != parent:
                return False
            with open(file, "rb") as opened:
                return opened.read() == _SECRET
        except OSError:
            return False


def _is_linked(seen: ProjectObserved) -> bool:
    return seen.identity is not None and seen.identity.git is GitEntry.FILE


def _same(one: Identity | None, other: Identity) -> bool:
    return one is not None and one.same_as(other)


@contextmanager
def swapping(scene: SwapRace) -> Iterator[None]:
    """Swap in another process during the block."""
    pid = os.fork()
    if pid == 0:
        _swap(raw(scene.victim), raw(scene.link))
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _swap(victim: bytes, link: bytes) -> NoReturn:
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    while True:
        libc.renameat2(_AT_FDCWD, victim, _AT_FDCWD, link, _RENAME_EXCHANGE)


@contextmanager
def made_scene(reading: Target) -> Iterator[SwapRace]:
    """Yield the files of a race, and remove them at the end."""
    with tempfile.TemporaryDirectory() as top:
        yield SwapRace(Path(os.path.realpath(top)), reading)


def count_escapes(part: tuple[Target, int]) -> int:
    """Count the reads outside among so many tries."""
    reading, tries = part
    with made_scene(reading) as scene:
        look = scene.look()
        with swapping(scene):
            return sum(look() for _ in range(tries))
