"""Find the walls that could have made what another wall's session found.

Two walls may show one repository at the same time. What appears there could be the work of either,
and the report must not blame the wrong one. Each wall's folder has a record of the roots that its
programs see, and, in `ended`, of the last moment in which they saw other roots.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rootsd.core.paths import contains
from rootsd.core.record import Text
from rootsd.wall.git.facts import Fact
from rootsd.wall.git.named_files import NamedFiles
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.git.wall_folders import CHANGES, START, program_of, wall_folders

_ENDED = b"/ended"
_MAX_ENDED = 256


class LastMoments(NamedTuple):
    """When the programs of a wall saw other roots than now for the last time, in seconds."""

    by_root: Mapping[Text, float] = MappingProxyType({})


class FolderId(NamedTuple):
    """What tells a folder from another one that has its path later."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FolderId:
        """Return the identity in the answer of stat(2)."""
        return cls(status.st_dev, status.st_ino)


class SessionState(NamedTuple):
    """What is known about a session that has not ended, as its file has it.

    `roots` has the facts about each root before the programs saw it, and `since` the time of that,
    also for roots that they no longer see. The session did not make the `repositories`. `named` is
    what git named at the start, for the daemon, which cannot ask git.
    """

    roots: Mapping[Text, tuple[Fact, ...]] = MappingProxyType({})
    repositories: Mapping[Text, FolderId] = MappingProxyType({})
    found: tuple[Fact, ...] = ()
    since: Mapping[Text, float] = MappingProxyType({})
    named: Mapping[Text, NamedFiles] = MappingProxyType({})


def note_end(folder: bytes, roots: Iterable[bytes], now: float) -> None:
    """Remember that the programs of a wall saw these roots until `now`. Raises OSError."""
    file = folder + CHANGES + _ENDED
    ends = {**_ends_in(file), **dict.fromkeys(roots, now)}
    newest = sorted(ends, key=lambda root: ends[root])[-_MAX_ENDED:]
    replace_record(file, LastMoments({root: ends[root] for root in newest}))


class Peers:
    """The other walls of all walls, as they were when this was made."""

    def __init__(self, folder: bytes) -> None:
        self._own = program_of(folder)
        self._ends: list[tuple[str, bytes, float]] = []
        for other in wall_folders(os.path.dirname(os.path.dirname(folder))):
            if other != folder:
                name = program_of(other)
                ends = {**_ends_in(other + CHANGES + _ENDED)}
                ends.update(dict.fromkeys(_running_in(other + CHANGES + START), float("inf")))
                self._ends += ((name, root, end) for root, end in ends.items())

    def at(self, path: bytes, since: float) -> tuple[str, ...]:
        """Return the names of those whose programs could write to `path` after `since`."""
        names = {name for name, root, end in self._ends if end >= since and contains(root, path)}
        return tuple(sorted(f"another {name}" if name == self._own else name for name in names))


def _ends_in(file: bytes) -> Mapping[bytes, float]:
    return (read_record(LastMoments, file) or LastMoments()).by_root


def _running_in(file: bytes) -> Iterable[bytes]:
    return (read_record(SessionState, file) or SessionState()).roots
