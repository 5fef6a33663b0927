"""State folders that a stress test copies without the store noticing.

A real store detects a copy by the path of its folder and by the identity of its database file. A
stress test that opens thousands of copies has to say which copies count as one file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from rootsd.state.store import anchors
from rootsd.state.store.anchors import FileIdentity

Identify = Callable[[Path], FileIdentity | None]
_SECOND_NAME = "head"


@contextmanager
def use_copied_stores(identify: Identify) -> Iterator[None]:
    """Let stores find their second anchor in any folder, use `identify` for the identity of a
    database file, and take no notice of change times.
    """
    with (
        patch("rootsd.state.store.anchors.second_anchor_file", lambda _, out: out / _SECOND_NAME),
        patch("rootsd.state.store.anchors.change_times_ns", lambda _: (0, 0)),
        patch("rootsd.state.store.opening.identify", identify),
        patch("rootsd.state.store.recovery.identify", identify),
    ):
        yield


def same_identity(file: Path) -> FileIdentity | None:
    """Return the same identity for every file, after asking the system for the real one."""
    anchors.identify(file)
    return FileIdentity(1, 1, None)


def _table(top: Path) -> Path:
    """Return the file with the identities below `top`. It lies beside `top`, so it is not
    recorded.
    """
    return top.with_name(f"{top.name}.identities")


def write_identities(top: Path, identities: Mapping[int, int]) -> None:
    """Record the simulated identity of each file below `top`, by real inode number."""
    _table(top).write_text(json.dumps({str(real): kept for real, kept in identities.items()}))


def read_identities(top: Path) -> dict[int, int]:
    """Return the records of `write_identities`, or nothing if there are none."""
    try:
        found = json.loads(_table(top).read_text())
    except FileNotFoundError:
        return {}
    return {int(real): kept for real, kept in found.items()}


def simulated_identity(file: Path) -> FileIdentity | None:
    """Return the simulated identity of the database `file` in a state folder."""
    real = os.lstat(file).st_ino
    return FileIdentity(read_identities(file.parent.parent).get(real, real), 1, None)
