"""Approves folders, puts another folder in the place of each, and counts what is still published.

A program, to be run where it may mount: `python -m support.replacing FILE_SYSTEM ROUNDS MEMORY`
mounts the file system in the working directory and prints, for each way, how many were kept.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import anyio

from rootsd.core.catalog import Catalog
from rootsd.core.changes import AuditRecord, Change
from rootsd.core.inputs import Approve, Deny, Forget, Observation, ProjectGone, ProjectObserved
from rootsd.core.model import Identity, Verdict
from rootsd.core.paths import RefusedPlaces
from rootsd.disk.identity import identify
from rootsd.disk.safety import FolderSafety
from rootsd.state.ledger import Ledger, Verifier
from rootsd.state.timeout_verifier import TimeoutVerifier
from rootsd.vcs.probe import probe
from rootsd.vcs.verify import RootVerifier
from support.decisions import NOON, PERSON
from support.fakes import no_expiries
from support.repos import fake_repository, raw

_MS_BIND = 4096
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


class FileSystem(StrEnum):
    """Where it is done."""

    EXT4 = "ext4"
    TMPFS = "tmpfs"
    OVERLAY = "overlay"


class Memory(StrEnum):
    """How a folder is known again."""

    IDENTITY = "identity"
    INODE = "inode"  # the control: device and inode alone


class Way(StrEnum):
    """How a folder is replaced."""

    CLONED_AGAIN = "deleted and cloned again"
    LINKED = "swapped for a link"
    RENAMED_OVER = "another renamed over it"
    EXCHANGED = "exchanged with another"
    MOUNTED_OVER = "another mounted over it"
    RESTORED = "an old backup restored"


class _ByInode:
    """What many programs do: a folder is the same where device and inode are."""

    def __init__(self) -> None:
        self.looks = 0
        self._seen: dict[bytes, tuple[int, int]] = {}

    def verify_more(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        return self.verify(roots)

    def verify(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        observations: list[Observation] = []
        for path in roots:
            try:
                found = os.stat(path)
            except OSError:
                observations.append(ProjectGone(path))
                continue
            now = (found.st_dev, found.st_ino)
            if self._seen.setdefault(path, now) != now:
                observations.append(probe(path))
        return observations


class _KeepsNothing:
    """Only what is in memory matters here."""

    def append(self, changes: Sequence[Change | AuditRecord], at: datetime) -> None:
        """Keep nothing."""


class _Victim:
    """One path, the folder there, and what is to take its place."""

    def __init__(self, top: Path) -> None:
        self.path = top / "src" / "project"
        self.other = top / "src" / "other"
        self.away = top / "src" / "away"

    def prepare(self) -> None:
        """A repository at the path, and another."""
        self.undo()
        fake_repository(self.path)
        fake_repository(self.other)

    def undo(self) -> None:
        """Leave nothing."""
        while _libc.umount2(raw(self.path), _MNT_DETACH) == 0:
            continue
        for place in (self.path, self.other, self.away):
            if place.is_symlink():
                place.unlink()
            shutil.rmtree(place, ignore_errors=True)

    def replace(self, way: Way) -> None:
        """Put another folder there, in no time."""
        match way:
            case Way.CLONED_AGAIN:
                shutil.rmtree(self.path)
                fake_repository(self.path)
            case Way.LINKED:
                self.path.rename(self.away)
                self.path.symlink_to(self.other.name)
            case Way.RENAMED_OVER:
                shutil.rmtree(self.path / ".git")
                self.other.rename(self.path)
            case Way.EXCHANGED:
                self.path.rename(self.away)
                self.other.rename(self.path)
            case Way.MOUNTED_OVER:
                if _libc.mount(raw(self.other), raw(self.path), None, _MS_BIND, None) != 0:
                    raise OSError(ctypes.get_errno(), "the mount was refused")
            case Way.RESTORED:
                shutil.copytree(self.path, self.away)
                shutil.rmtree(self.path)
                shutil.copytree(self.away, self.path)


async def _kept(top: Path, way: Way, rounds: int, make: Callable[[], Verifier]) -> int:
    """How often the approval outlived the folder, of `rounds` times."""
    catalog = Catalog.of((), (), RefusedPlaces(b"/home/nobody"), 1)
    victim = _Victim(top)
    kept = 0
    path = raw(victim.path)
    verifier = make()
    for number in range(rounds):
        if number % 2 == 0:
            verifier = make()  # one that knows nothing yet, and one that has seen much
        ledger = Ledger(
            catalog, _KeepsNothing(), verifier, expiries=no_expiries(), now=lambda: NOON
        )
        victim.prepare()
        seen = probe(path)
        assert isinstance(seen, ProjectObserved), seen
        await ledger.observe([seen])
        await ledger.execute([Approve(path, seen.identity, PERSON)])
        roots = (await ledger.current()).roots
        assert [root.path for root in roots] == [path], "it was to be published at first"
        approved = identify(path)
        victim.replace(way)
        roots = (await ledger.current()).roots
        kept += bool(roots) or await _is_kept_when_seen(ledger, path, approved)
        await ledger.execute([Deny(path, PERSON), Forget(path, PERSON)])
    victim.undo()
    return kept


async def _is_kept_when_seen(ledger: Ledger, path: bytes, approved: Identity) -> bool:
    """Whether discovery, which looks there next, finds an approval for what lies there now."""
    seen = probe(path)
    assert not (isinstance(seen, ProjectObserved) and seen.identity == approved), (
        "it was not replaced"
    )
    await ledger.observe([seen])
    if ledger.catalog.roots:
        return True
    is_there = isinstance(seen, ProjectObserved)
    return is_there and ledger.catalog.judgments[path].verdict is Verdict.APPROVED


def _mount(kind: FileSystem) -> Path:
    top = Path.cwd() / kind
    top.mkdir()
    disk = Path.cwd() / "disk"
    image = Path.cwd() / "image"
    if kind is FileSystem.TMPFS:
        _run("mount", "-t", "tmpfs", "tmpfs", top)
        return top
    with image.open("wb") as file:
        file.truncate(64 << 20)
    _run("mkfs.ext4", "-q", image)
    if kind is FileSystem.EXT4:
        _run("mount", "-o", "loop", image, top)
        return top
    disk.mkdir()
    _run("mount", "-o", "loop", image, disk)
    lower, upper, work = (disk / name for name in ("lower", "upper", "work"))
    for folder in (lower, upper, work):
        folder.mkdir()
    _run("mount", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
         "overlay", top)  # fmt: skip
    return top


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """See the module's text."""
    kind, rounds, memory = FileSystem(sys.argv[1]), int(sys.argv[2]), Memory(sys.argv[3])
    top = _mount(kind)
    surroundings = FolderSafety(os.getuid())
    look = _ByInode if memory is Memory.INODE else lambda: RootVerifier(surroundings)

    def make() -> Verifier:
        return TimeoutVerifier(look, tuple, lambda _paths: None)

    kept = {way: anyio.run(_kept, top, way, rounds, make) for way in Way}
    print(json.dumps(kept))  # noqa: T201 - this is what the test reads


if __name__ == "__main__":
    main()
