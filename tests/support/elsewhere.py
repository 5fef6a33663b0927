"""State folders that a harness copies: the store takes a copy for the original meanwhile.

A real store detects that it was copied, by the path of its folder and by the identity of its
database file. A harness that opens thousands of copies has to say which copies count as one file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from rootsd.state.store import anchors
from rootsd.state.store.anchors import FileIdentity

Identify = Callable[[Path], FileIdentity | None]
_SECOND_NAME = "head"


@contextmanager
def elsewhere(identify: Identify) -> Iterator[None]:
    """Have stores find their second anchor wherever they lie, and take `identify` for the
    identity of a database file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "rootsd.state.store.anchors.second_anchor_file", lambda _, out: out / _SECOND_NAME
        )
        for module in ("opening", "recovery"):
            patch.setattr(f"rootsd.state.store.{module}.identify", identify)
        yield


def one_file(file: Path) -> FileIdentity | None:
    """Return the same identity for every file, after asking the system for the real one."""
    anchors.identify(file)
    return FileIdentity(1, 1, None)


def _table(top: Path) -> Path:
    """The file that lists the identities below `top`. It lies beside it, not to be recorded."""
    return top.with_name(f"{top.name}.identities")


def write_identities(top: Path, identities: Mapping[int, int]) -> None:
    """Record which identities the files below `top` have: by real inode number, simulated ones."""
    _table(top).write_text(json.dumps({str(real): kept for real, kept in identities.items()}))


def read_identities(top: Path) -> dict[int, int]:
    """Return what `write_identities` recorded; nothing if it recorded nothing."""
    try:
        found = json.loads(_table(top).read_text())
    except FileNotFoundError:
        return {}
    return {int(real): kept for real, kept in found.items()}


def simulated(file: Path) -> FileIdentity | None:
    """Return the identity of the database `file`, in the state folder below a top."""
    real = os.lstat(file).st_ino
    return FileIdentity(read_identities(file.parent.parent).get(real, real), 1, None)
