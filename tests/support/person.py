"""A person at a shell, for end-to-end tests. Runs `rootsd` and `git` as separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from enum import Enum, auto
from pathlib import Path
from typing import Any

from support import preloaded
from support.guard_settings import configure_guard
from support.polling import until

HANG_GUARD = 60

Finished = subprocess.CompletedProcess[str]


class Start(Enum):
    """How a process of `rootsd` comes into being: see `support.preloaded`."""

    FORK = auto()
    PROGRAM = auto()


class Person:
    """A person with a folder of sources, `parent`, and a repository elsewhere to clone from."""

    def __init__(self, home: Path, guard: str = "off", start: Start = Start.FORK) -> None:
        self.home = home
        self._start = start
        self.origin = home / "elsewhere" / "origin"
        self.parent = home / "src"
        self.parent.mkdir(parents=True)
        configure_guard(Path(self.environment()["ROOTSD_DIR"]), guard)
        self.origin.mkdir(parents=True)
        self.git("init", "-q", str(self.origin))
        (self.origin / "README").write_text("hello\n")
        self.git("-C", str(self.origin), "add", "README")
        self.git("-C", str(self.origin), "commit", "-qm", "first")

    def git(self, *arguments: str) -> None:
        """Run git. It must succeed."""
        subprocess.run(["git", *arguments], check=True, capture_output=True, timeout=HANG_GUARD)

    def clone(self, name: str) -> Path:
        """Clone the repository into the parent with git."""
        self.git("clone", "-q", str(self.origin), str(self.parent / name))
        return self.parent / name

    def run(self, *arguments: str, within: tuple[str, ...] = ()) -> Finished:
        """Run `rootsd` with `arguments`, and return the result. `within` is a wrapper command."""
        if self._start is Start.FORK and not within:
            return preloaded.run(arguments, self.environment(), HANG_GUARD)
        return subprocess.run(
            [*within, sys.executable, "-m", "rootsd", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_GUARD,
            env=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of the tests, with a home folder that exists."""
        return {**os.environ, "HOME": str(self.home)}

    def rootsd(self, *arguments: str) -> str:
        """Run `rootsd`, which must succeed, and return its output."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the items of a listing."""
        items: list[dict[str, Any]] = json.loads(self.rootsd(*arguments, "--json"))["items"]
        return items

    def names(self, *arguments: str) -> list[str]:
        """Return the names in a listing."""
        return [item["name"] for item in self.items(*arguments)]

    def wait_until_listed(self, name: str, *listing: str) -> None:
        """Repeat the listing until it contains `name`. Each attempt is a fork, so this does not
        spin.
        """

        def is_listed() -> bool:
            done = preloaded.run((*listing, "--json"), self.environment(), HANG_GUARD)
            assert done.returncode == 0, f"{listing}: {done.stdout}{done.stderr}"
            return any(item["name"] == name for item in json.loads(done.stdout)["items"])

        until(is_listed)

    def daemon_pid(self) -> int:
        """Return the pid of the running daemon."""
        pid: int = json.loads(self.rootsd("status", "--json"))["daemon"]["pid"]
        return pid


class Resident(Person):
    """A person with the same `ROOTSD_DIR` in several tests, below the home folder."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "ROOTSD_DIR": str(self.home / "rootsd")}
