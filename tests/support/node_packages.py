"""Node programs for tests. Their packages are installed once, by the lock in tests/e2e/node.

They are installed below build/, because nothing installed belongs among the tests. The lock names
no address of a registry. It includes a node, because those of some distributions are too old.
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
HOME = TOP / "build" / "home"
"""The home folder of a user who has installed the packages with `npm install -g`.

So the wall shows them, without an option.
"""
INSTALL_SECONDS = 600
_INPUTS = ("package.json", "package-lock.json", ".npmrc")


@cache
def packages() -> Path:
    """Return the folder with `node_modules`. Install it if the lock has changed."""
    folder = HOME / ".npm-global" / "lib"
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
    """Return the node from the lock."""
    return next((packages() / "node_modules").glob("node-*/bin/node"))


def program(name: str) -> Path:
    """Copy a program of tests/e2e/node beside the packages, so that its imports resolve; return
    its path.
    """
    return Path(shutil.copy(SOURCES / name, packages() / name))
