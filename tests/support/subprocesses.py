"""Run code in another process, as an ordinary user or in a namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Root can read everything, except without the capabilities that override permissions.
UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
OWN_MOUNTS = ("unshare", "--mount")


def run_python(wrapper: tuple[str, ...], code: str, *arguments: Path) -> tuple[str, str]:
    """Run `code` below `wrapper`, and return its output and its errors."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-W", "error", "-c", code, *arguments],
        env=_with_our_modules(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout, done.stderr


def run_program(wrapper: tuple[str, ...], module: str, *arguments: str, folder: Path) -> str:
    """Run one of the support programs in `folder`, and return its output. It must succeed."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-W", "error", "-m", module, *arguments],
        env=_with_our_modules(), cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _with_our_modules() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
