"""Real repositories for tests, created by git. Its settings come from the environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# Version 2, no entries, no checksum; see gitformat-index(5).
_EMPTY_INDEX = b"DIRC" + (2).to_bytes(4, "big") + bytes(4) + bytes(20)


def git(*arguments: str | Path, cwd: Path | None = None) -> None:
    """Run git. It must succeed."""
    subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True)


def git_output(*arguments: str | Path, cwd: Path) -> str:
    """Run git, and return what it prints, without the end of the line."""
    done = subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def make_repository(path: Path, files: int = 1) -> Path:
    """Create a repository with one commit of `files` files."""
    git("init", path)
    for number in range(files):
        folder = path / f"d{number % 7}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}").write_text(f"{number}\n" * 20)
    git("add", ".", cwd=path)
    git("commit", "-m", "one", cwd=path)
    return path


def cloned(folder: Path) -> Path:
    """Create `up` with five files and its clone `one` in the folder; return `one`."""
    make_repository(folder / "up", files=5)
    git("clone", f"file://{folder / 'up'}", folder / "one")
    return folder / "one"


def fake_repository(path: Path) -> Path:
    """Create what discovery takes for a complete repository, in a few system calls and without
    git.
    """
    (path / ".git" / "objects").mkdir(parents=True)
    (path / ".git" / "HEAD").write_text("1" * 40 + "\n")
    (path / ".git" / "index").write_bytes(_EMPTY_INDEX)
    return path


def raw(path: Path) -> bytes:
    """Return the path as bytes, as discovery has it."""
    return os.fsencode(path)
