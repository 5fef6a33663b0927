"""A program that writes its environment and its parent processes to FILE.

`python environment_report.py FILE` writes an object with `environment`, and `lineage`: the name
and the arguments of this process and of those above it. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TypedDict


class Ancestor(TypedDict):
    """A process of the lineage."""

    pid: int
    name: str
    arguments: list[str]


class Surroundings(TypedDict):
    """The content of FILE."""

    environment: dict[str, str]
    lineage: list[Ancestor]


def lineage(pid: int) -> list[Ancestor]:
    """Return the process `pid` and those above it, without the first of the system."""
    found: list[Ancestor] = []
    while pid > 1:
        folder = Path("/proc", str(pid))
        name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(") ")
        arguments = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        found.append({"pid": pid, "name": name, "arguments": arguments})
        pid = int(rest.split()[1])
    return found


if __name__ == "__main__":
    told: Surroundings = {"environment": dict(os.environ), "lineage": lineage(os.getpid())}
    Path(sys.argv[1]).write_text(json.dumps(told))
