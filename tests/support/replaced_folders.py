"""A program that approves folders, replaces each, and counts those that are still published.

Run it where it may mount: `python -m support.replaced_folders FILE_SYSTEM ROUNDS MEMORY`. It
mounts the file system on the working directory. For each kind of replacement, it prints the number
of folders that stayed published.
"""

from __future__ import annotations

import atexit
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
from rootsd.state.ledger import Ledger, Verifier
from rootsd.state.timeout_verifier import TimeoutVerifier
from rootsd.vcs.probe import probe
from rootsd.vcs.verify import RootVerifier
from support.ledger_harness import no_expiries
from support.polling import until
from support.repositories import fake_repository, raw
from support.sample_decisions import NOON, PERSON
from support.system_parts import folder_safety

_MS_BIND = 4096
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


class FileSystem(StrEnum):
    """The file system for the test."""

    EXT4 = "ext4"
    TMPFS = "tmpfs"
    OVERLAY = "overlay"
    BTRFS = "btrfs"
    XFS = "xfs"
    FUSE = "bindfs"


_IMAGE_BYTES = {FileSystem.BTRFS: 128 << 20, FileSystem.XFS: 320 << 20}


class Memory(StrEnum):
    """How the ledger recognizes a folder."""

    IDENTITY = "identity"
    INODE = "inode"  # the control: device and inode only


class Replacement(StrEnum):
    """How a folder is replaced."""

    CLONED_AGAIN = "deleted and cloned again"
    LINKED = "swapped for a link"
    RENAMED_OVER = "another renamed over it"
    EXCHANGED = "exchanged with another"
    MOUNTED_OVER = "another mounted over it"
    RESTORED = "an old backup restored"


class _ByInode:
    """A verifier that compares only device and inode, as many programs do."""

    def __init__(self) -> None:
        self.lstat_calls = 0
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


class KeepsNothing:
    """A saver that stores nothing, because only the state in memory matters here."""

    def append(self, changes: Sequence[Change | AuditRecord], at: datetime) -> None:
        """Store nothing."""


class _ReplacedFolder:
    """One path, the folder there, and the folder that replaces it."""

    def __init__(self, top: Path) -> None:
        self.path = top / "src" / "project"
        self.other = top / "src" / "other"
        self.away = top / "src" / "away"

    def prepare(self) -> None:
        """Create a repository at the path, and another one."""
        self.undo()
        fake_repository(self.path)
        fake_repository(self.other)

    def undo(self) -> None:
        """Remove both."""
        while _libc.umount2(raw(self.path), _MNT_DETACH) == 0:
            continue
        for place in (self.path, self.other, self.away):
            if place.is_symlink():
                place.unlink()
            shutil.rmtree(place, ignore_errors=True)

    def replace(self, way: Replacement) -> None:
        """Replace the folder as fast as possible."""
        match way:
            case Replacement.CLONED_AGAIN:
                shutil.rmtree(self.path)
                fake_repository(self.path)
            case Replacement.LINKED:
                self.path.rename(self.away)
                self.path.symlink_to(self.other.name)
            case Replacement.RENAMED_OVER:
                shutil.rmtree(self.path / ".git")
                self.other.rename(self.path)
            case Replacement.EXCHANGED:
                self.path.rename(self.away)
                self.other.rename(self.path)
            case Replacement.MOUNTED_OVER:
                if _libc.mount(raw(self.other), raw(self.path), None, _MS_BIND, None) != 0:
                    raise OSError(ctypes.get_errno(), "the mount was refused")
            case Replacement.RESTORED:
                shutil.copytree(self.path, self.away)
                shutil.rmtree(self.path)
                shutil.copytree(self.away, self.path)


async def _kept(top: Path, way: Replacement, rounds: int, make: Callable[[], Verifier]) -> int:
    """Return how many of `rounds` approvals survived the replacement of the folder."""
    catalog = Catalog.of((), (), RefusedPlaces(b"/home/nobody"), 1)
    victim = _ReplacedFolder(top)
    kept = 0
    path = raw(victim.path)
    verifier = make()
    for number in range(rounds):
        if number % 2 == 0:
            verifier = make()  # one without any state, and one with much
        ledger = Ledger(
            catalog, KeepsNothing(), verifier, expiries=no_expiries(), now=lambda: NOON
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
    """Return whether discovery, which reads the path next, finds an approval for the new
    folder.
    """
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
    if kind is FileSystem.FUSE:
        disk.mkdir()
        atexit.register(_end, subprocess.Popen(["bindfs", "-f", disk, top]), top)
        until(lambda: os.path.ismount(top))
        return top
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES.get(kind, 64 << 20))
    _run(f"mkfs.{kind}" if kind in _IMAGE_BYTES else "mkfs.ext4", "-q", image)
    if kind is not FileSystem.OVERLAY:
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


def _end(served: subprocess.Popen[bytes], top: Path) -> None:
    _libc.umount2(raw(top), _MNT_DETACH)
    served.wait()


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Replace folders, and print the counts."""
    kind, rounds, memory = FileSystem(sys.argv[1]), int(sys.argv[2]), Memory(sys.argv[3])
    top = _mount(kind)
    surroundings = folder_safety()
    look = _ByInode if memory is Memory.INODE else lambda: RootVerifier(surroundings)

    def make() -> Verifier:
        return TimeoutVerifier(look, tuple, lambda _paths: None)

    kept = {way: anyio.run(_kept, top, way, rounds, make) for way in Replacement}
    print(json.dumps(kept))  # noqa: T201 - this is what the test reads


if __name__ == "__main__":
    main()
