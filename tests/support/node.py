"""Node programs of tests: packages installed once, by the lock in tests/e2e/node.

They lie below build/, since nothing that is installed belongs among the tests. The lock names no
address of a registry, and brings a node of its own: what distributions ship is too old for some.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

TOP = Path(__file__).parent.parent.parent
SOURCES = TOP / "tests" / "e2e" / "node"
INSTALL_SECONDS = 600
_INPUTS = ("package.json", "package-lock.json", ".npmrc")


@cache
def packages() -> Path:
    """The folder with `node_modules`, installed if the lock is another than the last time."""
    folder = TOP / "build" / "node"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed"
        wanted = b"".join((SOURCES / name).read_bytes() for name in _INPUTS)
        if not stamp.exists() or stamp.read_bytes() != wanted:
            for name in _INPUTS:
                shutil.copy(SOURCES / name, folder / name)
            subprocess.run(
                ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                cwd=folder,
                check=True,
                timeout=INSTALL_SECONDS,
                env={**os.environ, "HOME": str(folder), "npm_config_cache": str(folder / "cache")},
            )
            stamp.write_bytes(wanted)
    return folder


@cache
def node() -> Path:
    """The node that the lock brings."""
    return next((packages() / "node_modules").glob("node-*/bin/node"))


def program(name: str) -> Path:
    """A program of tests/e2e/node, put beside the packages, where its imports are looked for."""
    return Path(shutil.copy(SOURCES / name, packages() / name))
