"""Random operations on the folders and mounts of a few parents, to test discovery.

Run as root in its own mount namespace: `python -m support.random_operations TOP SEED OPERATIONS
FAULT`. Discovery runs in another process without capabilities, so that permissions bind it. The
program prints a summary in JSON. At the first difference it prints the last operations and exits
with status 1.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from support.discovery_client import DiscoveryClient
from support.repositories import fake_repository, make_repository

_HANG_S = 60
_QUEUE_SIZE = Path("/proc/sys/fs/inotify/max_queued_events")
_NAMES = ("a", "b", "c", "build", "node_modules", os.fsdecode(b"\xff"))
_SIGNS_OF_LIFE = (
    ".git", ".git/HEAD", ".git/config", ".git/objects/pack", ".git/refs/heads", ".git/packed-refs",
    ".git/index.lock", ".git/index",
)  # fmt: skip


class RandomOperations:
    """Five parents and a folder outside them. Each operation may fail."""

    def __init__(self, top: Path, seed: int, fault: str) -> None:
        self.top = top
        self.random = random.Random(seed)  # noqa: S311 - a test that can be repeated
        self.log: deque[str] = deque(maxlen=40)
        self.counts: Counter[str] = Counter()
        self.late = top / "x" / "y" / "late"
        self.disk = top / "disk"
        self.barrier = top / "barrier"
        self.outside = top / "outside"
        self.places = (top / "src", top / "src", top / "vcs", self.disk, self.late, self.outside)
        for folder in (*self.places, self.barrier, top / "volumes"):
            folder.mkdir(parents=True, exist_ok=True)
        self.origin = make_repository(top / "origin", files=20)
        self._mount("-t", "tmpfs", "one", str(top / "volumes"))
        self.volumes = (top / "volumes" / "one", top / "volumes" / "two")
        for volume in self.volumes:
            volume.mkdir()
        self.mounted: list[Path] = []
        self._sweep_needed = False
        self._hears = True
        self.parents = (*dict.fromkeys(self.places[:-1]), top / "src" / "b")
        self._discovery = DiscoveryClient(fault, top / "index", self.parents, self.barrier)

    def settled(self, *, sweep: bool) -> list[str]:
        """Let discovery process all events, and return the differences."""
        sweep, self._sweep_needed = sweep or self._sweep_needed, False
        return self._discovery.settled(sweep=sweep)

    def end(self) -> None:
        """End discovery and unmount everything."""
        self._discovery.end()
        for point in (*reversed(self.mounted), self.top / "volumes"):
            subprocess.run(["umount", "-l", point], capture_output=True, check=False)

    # The operations

    def step(self) -> None:
        """Perform one random operation."""
        steps: dict[Callable[[], str], int] = {
            self.make_folder: 12, self.make_repository: 16, self.init: 2, self.clone: 2,
            self.clone_and_kill: 1, self.make_project: 6, self.unmake_project: 4, self.remove: 8,
            self.move: 20, self.unmake: 5, self.replace: 5, self.link: 3, self.chmod: 8,
            self.burst: 1, self.mount: 2, self.unmount: 2, self.disturb_late: 4,
            self.chmod_parent: 1, self.restart: 2, self.copy: 4,
        }  # fmt: skip
        (step,) = self.random.choices(list(steps), list(steps.values()))
        self._sweep_needed |= self._is_a_parent_blind()
        try:
            done = step()
        except OSError as error:
            # A mount keeps its folder and those above it from being removed.
            self._sweep_needed |= error.errno == errno.EBUSY
            return
        self.counts[step.__name__] += 1
        self.log.append(f"{step.__name__} {done}")

    def _is_a_parent_blind(self) -> bool:
        """Return whether only a sweep can report a change of some parent.

        An unreadable file system mounted on a parent cannot be watched, and no folder above it
        reports when its root becomes readable. If the folder above is unreadable, it does not
        report that the parent was created again.
        """
        mounted = (place for place in self.places if place.is_mount())
        above = (place.parent for place in self.parents if place.parent.exists())
        return any(not place.stat().st_mode & stat.S_IRUSR for place in (*mounted, *above))

    def place(self) -> Path:
        names = self.random.choices(_NAMES, k=self.random.randint(1, 4))
        return self.random.choice(self.places).joinpath(*names)

    def old_place(self) -> Path:
        """Return a path that usually exists."""
        place = self.random.choice(self.places)
        with suppress(OSError):
            for _ in range(self.random.randint(1, 4)):
                below = sorted(
                    entry.path for entry in os.scandir(place)
                    if entry.is_dir(follow_symlinks=False) and entry.name != ".git"
                )  # fmt: skip
                if not below:
                    break
                place = Path(self.random.choice(below))
        return self.place() if place in self.places else place

    def changed_place(self) -> Path:
        """Return a random place to create or fill."""
        return self._noted(self.place())

    def changed_old_place(self) -> Path:
        """Return a random place, usually an existing one, to remove or move."""
        return self._noted(self.old_place())

    def _noted(self, place: Path) -> Path:
        """Note a change that only a periodic sweep finds.

        A repository's top folder is not watched. A clone that fetched nothing is a project only
        while it has files besides `.git`.
        """
        with suppress(OSError):
            around = next(above for above in place.parents if above.exists())
            self._sweep_needed |= (around / ".git").exists()
        return place

    def make_folder(self) -> str:
        place = self.changed_place()
        place.mkdir(parents=True, exist_ok=True)
        return str(place)

    def make_repository(self) -> str:
        place = self.changed_place()
        if (place / ".git").exists():
            return "nothing"
        return str(fake_repository(place))

    def init(self) -> str:
        place = self.changed_place()
        subprocess.run(["git", "init", "-q", place], capture_output=True, check=False)
        return str(place)

    def clone(self) -> str:
        place = self.changed_place()
        url = self.random.choice((str(self.origin), f"file://{self.origin}"))
        subprocess.run(["git", "clone", "-q", url, place], capture_output=True, check=False)
        return str(place)

    def clone_and_kill(self) -> str:
        """Kill a clone when a random one of its files exists."""
        place = self.changed_place()
        sign = place / self.random.choice(_SIGNS_OF_LIFE)
        command = ["git", "clone", "-q", f"file://{self.origin}", str(place)]
        clone = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        while clone.poll() is None and not sign.exists():
            os.sched_yield()
        with suppress(ProcessLookupError):
            os.killpg(clone.pid, signal.SIGKILL)
        clone.wait(_HANG_S)
        return f"{place} at {sign.name}"

    def make_project(self) -> str:
        place = self.place()
        place.mkdir(exist_ok=True)
        (place / "go.mod").touch()
        # The top folder of a repository is not watched; the periodic sweep finds the change.
        self._sweep_needed = True
        return str(place)

    def unmake_project(self) -> str:
        place = self.old_place()
        (place / "go.mod").unlink()
        self._sweep_needed = True
        return str(place)

    def remove(self) -> str:
        place = self.changed_old_place()
        shutil.rmtree(place)
        return str(place)

    def move(self) -> str:
        old, new = self.changed_old_place(), self.changed_place()
        new.parent.mkdir(parents=True, exist_ok=True)
        # A move to another file system copies, then removes the original.
        done = subprocess.run(["mv", "-nT", old, new], capture_output=True, check=False)
        self._sweep_needed |= done.returncode != 0
        return f"{old} {new}"

    def copy(self) -> str:
        """Copy a tree, completely or partly, with or without the original times."""
        old, new = self.old_place(), self.changed_place()
        new.parent.mkdir(parents=True, exist_ok=True)
        how, limit = self.random.choice(("-a", "-r")), self.random.choice((None, None, 0.003))
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["cp", how, "-T", old, new], capture_output=True, check=False, timeout=limit
            )
        return f"{how} {old} {new} {limit}"

    def unmake(self) -> str:
        place = self.old_place()
        shutil.rmtree(place / ".git")
        self._sweep_needed = True
        return str(place)

    def replace(self) -> str:
        place = self.changed_old_place()
        shutil.rmtree(place)
        return str(fake_repository(place))

    def link(self) -> str:
        place = self.changed_place()
        target = self.random.choice((self.old_place(), place.parent, self.top))
        if self.random.random() < 1 / 2:
            shutil.rmtree(place, ignore_errors=True)
        place.symlink_to(target)
        return f"{place} {target}"

    def chmod(self) -> str:
        place = self.old_place()
        return self._flip(place)

    def chmod_parent(self) -> str:
        return self._flip(self.random.choice((*self.places[:-1], self.late.parent)))

    def _leads_out(self, place: Path) -> bool:
        """Return whether `place` is a link to a folder that also contains the test's own files."""
        return place.resolve() in (self.top, *self.top.parents)

    def _flip(self, place: Path) -> str:
        if self._leads_out(place):
            return "nothing"
        mode = self.random.choice((0o000, 0o755, 0o755, 0o311, 0o444))
        place.chmod(mode)
        return f"{place} {mode:o}"

    def restart(self) -> str:
        """Restart discovery from its saved state, with an operation in between."""
        if not self._hears:
            return "nothing"
        self._discovery.ask("stop -")
        self._do_unheard()
        self._discovery.ask("start -")
        return ""

    def _do_unheard(self) -> None:
        self._hears = False
        for _ in range(self.random.randint(1, 12)):
            self.step()
        self._hears = True

    def burst(self) -> str:
        """Create more events than the queue holds while nobody reads it; the kernel drops some."""
        if not self._hears:
            return "nothing"
        os.kill(self._discovery.pid, signal.SIGSTOP)
        for _ in range(int(_QUEUE_SIZE.read_text()) // 2 + 1):
            folder = self.barrier / "burst"
            folder.mkdir()
            folder.rmdir()
        self._do_unheard()
        os.kill(self._discovery.pid, signal.SIGCONT)
        return ""

    def mount(self) -> str:
        if len(self.mounted) > 6:
            return "nothing"
        point = self.random.choice((self.disk, self.disk, self.late, self.old_place()))
        source = self.random.choice((*self.volumes, self.old_place()))
        if self._leads_out(point):
            return "nothing"
        how = ("--bind", str(source)) if self.random.random() < 0.8 else ("-t", "tmpfs", "new")
        self._mount(*how, str(point))
        self.mounted.append(point)
        return f"{how} {point}"

    def unmount(self) -> str:
        if not self.mounted:
            return "nothing"
        point = self.mounted.pop(self.random.randrange(len(self.mounted)))
        subprocess.run(["umount", "-l", point], capture_output=True, check=False)
        return str(point)

    def disturb_late(self) -> str:
        folder = self.random.choice((self.late, self.late.parent, self.late.parent.parent))
        away = self.top / "away"
        match self.random.randrange(4):
            case 0:
                shutil.rmtree(folder)
                return f"{folder} removed"
            case 1:
                folder.rename(away)
                return f"{folder} away"
            case 2:
                self.late.parent.mkdir(parents=True, exist_ok=True)
                away.rename(self.late)
                return "back"
            case _:
                self.late.mkdir(parents=True, exist_ok=True)
                return "made"

    def _mount(self, *arguments: str) -> None:
        done = subprocess.run(["mount", *arguments], capture_output=True, check=False)
        if done.returncode:
            raise OSError(done.stderr)


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")


def main() -> int:
    top, seed, operations, fault = Path(sys.argv[1]), *map(int, sys.argv[2:4]), sys.argv[4]
    disorder = RandomOperations(top, seed, fault)
    settled = 0
    try:
        while sum(disorder.counts.values()) < operations:
            for _ in range(disorder.random.randint(1, 6)):
                disorder.step()
            settled += 1
            if found := disorder.settled(sweep=settled % 10 == 0):
                log = list(disorder.log)
                _say({"seed": seed, "settled": settled, "found": found, "log": log})
                return 1
    finally:
        disorder.end()
    _say({"seed": seed, "settled": settled, "operations": dict(disorder.counts)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
