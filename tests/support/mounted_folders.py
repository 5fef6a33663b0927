"""A program that approves a folder on a file system, and mounts that and others.

Run it where it may mount: `python -m support.mounted_folders MEMORY FILE_SYSTEM...`. For each file
system, it prints what each step of `_STEPS` leaves of the approval: `published`, or why not.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio

from rootsd.core.catalog import Catalog
from rootsd.core.encoding import ProjectRecord, decode, encode
from rootsd.core.inputs import Approve, ProjectObserved
from rootsd.core.model import ObservedState, Project
from rootsd.core.paths import RefusedPlaces
from rootsd.disk import file_systems, folder_pins, identity, inode, mounts
from rootsd.disk.file_systems import FileSystem as Identified
from rootsd.state.ledger import Ledger
from rootsd.state.timeout_verifier import TimeoutVerifier
from rootsd.vcs.probe import probe
from rootsd.vcs.verify import RootVerifier
from support.git_hosts import make_key, ssh_host
from support.ledger_harness import no_expiries
from support.polling import until
from support.replaced_folders import KeepsNothing
from support.repositories import fake_repository, raw
from support.sample_decisions import NOON, PERSON
from support.system_parts import folder_safety

_MEGABYTE = 1 << 20
_MS_REMOUNT = 32
_libc = ctypes.CDLL(None, use_errno=True)
PUBLISHED = "published"
TOO_LATE = "published until discovery looked"


class FileSystem(StrEnum):
    """The file system that has the approved folder."""

    EXT4 = "ext4"
    XFS = "xfs"
    BTRFS = "btrfs"
    EROFS = "erofs"
    SQUASHFS = "squashfs"
    OVERLAY = "overlay"
    OVERLAY_IMAGE = "overlay over squashfs"
    BINDFS = "bindfs"
    SSHFS = "sshfs"
    NTFS_3G = "ntfs-3g"


class Memory(StrEnum):
    """How the folder is recognized."""

    IDENTITY = "identity"
    COUNTERS = "counters"  # the control: numbers of devices and inodes, and all handles
    BIRTHS = "births"  # the control: no handles on overlayfs
    LAYERS = "layers"  # the control: nothing below the layers of overlayfs
    LSTAT = "lstat"  # the control: no look at what was mounted since
    UNPINNED = "unpinned"  # the control: the kernel may forget a folder
    XFS_6_8 = "Linux 6.8"  # the kernel does not tell the UUID of XFS


class _Place:
    """A point at which one of two file systems of a kind is mounted, each with a folder `app`."""

    def __init__(self, top: Path, kind: FileSystem) -> None:
        self.point, self._top, self._kind = top / "point", top, kind
        self._loops: list[str] = []
        self._below: Path | None = None
        self.point.mkdir(parents=True)
        for name in ("staging", "prod"):
            fake_repository(top / name / "app")
            (top / name / "app" / name).touch()
            (top / name / "beside").mkdir()
            self._make(name)

    def mount(self, name: str) -> None:
        """Mount one of both."""
        source = self._top / name
        match self._kind:
            case FileSystem.BINDFS:
                _serve("bindfs", source, self.point)
            case FileSystem.SSHFS:
                _serve("sshfs", "-o", f"ssh_command=ssh -F {self._top.parent}/ssh/config",
                     f"{name}:{source}", self.point)  # fmt: skip
            case FileSystem.OVERLAY:
                lower, upper, work = (self._top / f"{name}-{each}" for each in ("l", "u", "w"))
                _run("mount", "-t", "overlay", "-o",
                     f"lowerdir={lower},upperdir={upper},workdir={work}",
                     "overlay", self.point)  # fmt: skip
            case FileSystem.OVERLAY_IMAGE:
                # Both have the same layers, and another image lies below one of them.
                lower, upper, work = (self._top / each for each in ("l", "u", "w"))
                self._attach(name)
                _run("mount", self._loops[-1], lower)
                self._below = lower
                _run("mount", "-t", "overlay", "-o",
                     f"lowerdir={lower},upperdir={upper},workdir={work}",
                     "overlay", self.point)  # fmt: skip
            case FileSystem.NTFS_3G:
                self._attach(name)
                _serve("ntfs-3g", "-o", "umask=022", self._loops[-1], self.point)
            case _:
                self._attach(name)
                _run("mount", self._loops[-1], self.point)

    def forget(self) -> None:
        """Have the kernel forget all folders there that nobody uses, as when memory is short."""
        if self._kind not in (FileSystem.BINDFS, FileSystem.SSHFS):
            self._shrink()
            return
        # These programs hear of it later. So wait until one has numbered a folder anew.
        for _ in range(2):
            before = self._handle_beside()
            until(partial(self._is_forgotten, before))

    def _is_forgotten(self, before: bytes | None) -> bool:
        self._shrink()
        return self._handle_beside() != before

    def _shrink(self) -> None:
        failed = _libc.mount(None, raw(self.point), None, _MS_REMOUNT, None)
        assert not failed, os.strerror(ctypes.get_errno())

    def _handle_beside(self) -> bytes | None:
        folder = os.open(self.point / "beside", os.O_RDONLY)
        try:
            return inode.file_handle(folder)
        finally:
            os.close(folder)

    def unmount(self) -> None:
        """Unmount what is mounted, and give its loop device to somebody else."""
        until(lambda: not _done("umount", self.point))
        if self._below is not None:
            _run("umount", self._below)
        while self._loops:
            _run("losetup", "-d", self._loops.pop())

    def _attach(self, name: str) -> None:
        done = _run("losetup", "--find", "--show", self._top / f"{name}.img")
        self._loops.append(done.decode().strip())

    def _make(self, name: str) -> None:
        source, image = self._top / name, self._top / f"{name}.img"
        match self._kind:
            case FileSystem.SQUASHFS | FileSystem.OVERLAY_IMAGE:
                for each in "luw":
                    (self._top / each).mkdir(exist_ok=True)
                # All times are equal, as in reproducible images.
                _run("mksquashfs", source, image, "-quiet", "-no-progress",
                     "-all-time", "0", "-mkfs-time", "0")  # fmt: skip
            case FileSystem.EROFS:
                _run("mkfs.erofs", "-T0", image, source)
            case FileSystem.OVERLAY:
                for each in ("u", "w"):
                    (self._top / f"{name}-{each}").mkdir()
                source.rename(self._top / f"{name}-l")
            case FileSystem.BINDFS | FileSystem.SSHFS:
                return
            case _:
                self._make_image(name)

    def _make_image(self, name: str) -> None:
        kind, image = self._kind, self._top / f"{name}.img"
        size = {FileSystem.XFS: 320, FileSystem.BTRFS: 128}.get(kind, 32) * _MEGABYTE
        with image.open("wb") as file:
            file.truncate(size)
        if kind is FileSystem.NTFS_3G:
            _run("mkfs.ntfs", "-q", "-F", image)
        else:
            _run(f"mkfs.{kind}", "-q", image)
        self.mount(name)
        shutil.copytree(self._top / name, self.point, dirs_exist_ok=True)
        self.unmount()


class _Approved:
    """The approval of a folder, and what a daemon makes of it."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._start(())

    def _start(self, projects: tuple[Project, ...]) -> None:
        catalog = Catalog.of(projects, (), RefusedPlaces(b"/home/nobody"), 1)
        safety = folder_safety()
        verifier = TimeoutVerifier(lambda: RootVerifier(safety), tuple, lambda _paths: None)
        self._ledger = Ledger(
            catalog, KeepsNothing(), verifier, expiries=no_expiries(), now=lambda: NOON
        )

    def restart(self) -> None:
        """Write down what is known, and read it as another daemon does."""
        known = self._ledger.catalog.projects[self._path]
        record = ProjectRecord(known.id, known.observed.kind, known.ruling)
        record = decode(ProjectRecord, encode(record))
        observed = decode(ObservedState, encode(known.observed))
        self._start((Project(known.path, known.id, observed, record.ruling),))

    async def approve(self) -> str:
        """Approve the folder that is there."""
        seen = probe(self._path)
        assert isinstance(seen, ProjectObserved), seen
        await self._ledger.observe([seen])
        await self._ledger.execute([Approve(self._path, seen.identity, PERSON)])
        return await self.state()

    async def state(self) -> str:
        """Return what clients get once discovery has looked. Before, they are to get no more."""
        was_published = bool((await self._ledger.current()).roots)
        known = self._ledger.catalog.projects[self._path].observed.identity
        seen = probe(self._path, filesystem=None if known is None else known.filesystem)
        await self._ledger.observe([seen])
        project = self._ledger.catalog.projects[self._path]
        if (await self._ledger.current()).roots:
            return PUBLISHED
        if was_published:
            return TOO_LATE
        lapse = project.ruling.lapse
        return project.observed.presence if lapse is None else lapse.reason


class _Story:
    """What happens to one folder, step by step."""

    def __init__(self, place: _Place) -> None:
        self.place, self.app = place, place.point / "app"
        self.approved = _Approved(raw(self.app))

    async def tell(self) -> dict[str, str]:
        """Return what is left of the approval after each step."""
        steps: dict[str, Callable[[], None]] = {
            "restarted": self.approved.restart,
            "written": self._write,
            "forgotten": self.place.forget,
            "unmounted": self.place.unmount,
            "mounted again": lambda: self.place.mount("staging"),
            "moved back": self._move_and_back,
            "replaced": self._replace,
            "another mounted": lambda: self._mount_over("prod"),
        }
        self.place.mount("staging")
        told = {"approved": await self.approved.approve()}
        for name, step in steps.items():
            try:
                step()
            except OSError as error:
                # It cannot be written, or cannot move a folder of the lower layer.
                if error.errno not in (errno.EROFS, errno.EXDEV):
                    raise
                continue
            told[name] = await self.approved.state()
            if told[name] not in (PUBLISHED, "suspended"):
                assert await self.approved.approve() == PUBLISHED
        self.approved.restart()
        self._mount_over("staging")
        told["the first mounted"] = await self.approved.state()
        self.place.unmount()
        return told

    def _write(self) -> None:
        (self.app / "file").touch()

    def _move_and_back(self) -> None:
        away = self.app.with_name("away")
        self.app.rename(away)
        away.rename(self.app)

    def _replace(self) -> None:
        shutil.rmtree(self.app)
        fake_repository(self.app)

    def _mount_over(self, name: str) -> None:
        self.place.unmount()
        self.place.mount(name)


def _run(*command: str | Path) -> bytes:
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def _serve(*command: str | Path) -> None:
    """Start a program that goes on in the background, and would keep a pipe open."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _done(*command: str | Path) -> int:
    return subprocess.run(command, check=False, capture_output=True).returncode


@contextmanager
def _ssh(folder: Path) -> Iterator[None]:
    """Run an sshd on loopback that is both `staging` and `prod`."""
    folder.mkdir()
    key = make_key(folder / "key")
    with ssh_host(folder / "host", key, "Subsystem sftp internal-sftp") as (port, _):
        (folder / "config").write_text(
            f"Host staging prod\n  HostName 127.0.0.1\n  Port {port}\n"
            f"  IdentityFile {folder}/key\n  StrictHostKeyChecking no\n"
            "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
        )
        yield


def _remember(memory: Memory) -> None:
    match memory:
        case Memory.IDENTITY:
            return
        case Memory.COUNTERS:
            setattr(identity, "file_system_of", _by_device)  # noqa: B010 - a private import
        case Memory.BIRTHS:
            inode._OVERLAY_HANDLE = -1
        case Memory.LAYERS:
            setattr(file_systems, "_layer", lambda *_: None)  # noqa: B010 - a function
        case Memory.LSTAT:
            setattr(mounts.MountTable, "changes", lambda _table: 0)  # noqa: B010 - a method
        case Memory.UNPINNED:
            setattr(folder_pins.FolderPins, "pin", lambda *_: None)  # noqa: B010 - a method
        case Memory.XFS_6_8:
            ask = file_systems._ioctl
            file_systems._ioctl = lambda fd, request, size: (
                None if request == file_systems._GETFSUUID else ask(fd, request, size)
            )


def _by_device(fd: int, _device: int, _mount_number: int | None) -> Identified:
    return Identified(b"fsid:%x" % os.fstatvfs(fd).f_fsid)


def main() -> None:
    """Tell the story of each file system, and print the results."""
    memory, *kinds = sys.argv[1:]
    _remember(Memory(memory))
    top = Path.cwd()
    # All file systems of this machine may be those of an image.
    _run("mount", "-t", "tmpfs", "tmpfs", top)
    os.chdir(top)
    with _ssh(top / "ssh") if FileSystem.SSHFS in kinds else nullcontext():
        told: Mapping[str, Mapping[str, str]] = {
            kind: anyio.run(_Story(_Place(top / kind, FileSystem(kind))).tell) for kind in kinds
        }
    os.chdir("/")
    until(lambda: not _done("umount", top))
    print(json.dumps(told))  # noqa: T201 - this is what the test reads


if __name__ == "__main__":
    main()
