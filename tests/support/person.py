"""Somebody at a shell, for end-to-end tests: runs `rootsd` and `git` as separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.unguarded import set_guard
from support.until import until

HANG_GUARD = 60

Finished = subprocess.CompletedProcess[str]

# Root reads and writes everything; "no permission" is met by a process without its powers.
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


class Person:
    """Has a folder of sources, `parent`, and a repository elsewhere to clone from."""

    def __init__(self, home: Path, guard: str = "off") -> None:
        self.home = home
        self.origin = home / "elsewhere" / "origin"
        self.parent = home / "src"
        self.parent.mkdir(parents=True)
        set_guard(Path(self.environment()["ROOTSD_DIR"]), guard)
        self.origin.mkdir(parents=True)
        self.git("init", "-q", str(self.origin))
        (self.origin / "README").write_text("hello\n")
        self.git("-C", str(self.origin), "add", "README")
        self.git("-C", str(self.origin), "commit", "-qm", "first")

    def git(self, *arguments: str) -> None:
        """Run git and let it succeed."""
        subprocess.run(["git", *arguments], check=True, capture_output=True, timeout=HANG_GUARD)

    def clone(self, name: str) -> Path:
        """`git clone` of the repository into the parent."""
        self.git("clone", "-q", str(self.origin), str(self.parent / name))
        return self.parent / name

    def run(self, *arguments: str, within: tuple[str, ...] = ()) -> Finished:
        """Run `rootsd` with `arguments`, whatever comes of it; `within` runs it."""
        return subprocess.run(
            [*within, sys.executable, "-m", "rootsd", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_GUARD,
            env=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        """The environment of the tests, with a home folder that exists."""
        return {**os.environ, "HOME": str(self.home)}

    def rootsd(self, *arguments: str) -> str:
        """Run `rootsd`, let it succeed, and return what it printed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """The items of a listing."""
        items: list[dict[str, Any]] = json.loads(self.rootsd(*arguments, "--json"))["items"]
        return items

    def names(self, *arguments: str) -> list[str]:
        """The names in a listing."""
        return [item["name"] for item in self.items(*arguments)]

    def wait_until_listed(self, name: str, *listing: str) -> None:
        """Ask until `name` is in the listing; each question is a process, so this is no spin."""
        until(lambda: name in self.names(*listing))

    def daemon_pid(self) -> int:
        """The process of the running daemon."""
        pid: int = json.loads(self.rootsd("status", "--json"))["daemon"]["pid"]
        return pid
