"""An approved git checkout, to work in behind the wall as a person does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from support import preloaded
from support.roots_publisher import RootsPublisher

_HANG_GUARD_S = 120


class Project:
    """An approved git checkout in a home folder. The paths are short, because sockets need it."""

    def __init__(self, home: Path, publisher: RootsPublisher) -> None:
        self.home = home
        self._publisher = publisher
        self.folder = home / "src" / "api"
        self.folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", ".")
        (self.folder / "README").write_text("hello\n")
        self.git("add", "README")
        self.git("commit", "-q", "-m", "first")

    def approve(self) -> None:
        """Publish the checkout."""
        root = ConfinedRoot(os.fsencode(self.folder), Access.READ_WRITE)
        self._publisher.publish(root)

    def deny(self) -> None:
        """Publish nothing."""
        self._publisher.publish()

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    def remote(self, name: str) -> Path:
        """Make a bare repository outside of the root."""
        folder = self.home / f"{name}.git"
        self.git("init", "-q", "--bare", str(folder))
        return folder

    def confine(self, script: str, *flags: str) -> subprocess.CompletedProcess[str]:
        words = ("confine", *flags, "--", "sh", "-c", script)
        return preloaded.run(words, os.environ, _HANG_GUARD_S, self.folder)

    def succeed(self, script: str, *flags: str) -> str:
        done = self.confine(script, *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fail(self, script: str, *flags: str) -> str:
        done = self.confine(script, *flags)
        assert done.returncode != 0
        return done.stderr
