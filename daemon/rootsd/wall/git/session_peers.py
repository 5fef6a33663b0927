"""Find the walls that could have made what another wall's session found.

Two walls may show one repository at the same time. What appears there could be the work of either,
and the report must not blame the wrong one. Each wall's folder has a record of the roots that its
programs see, and, in `ended`, of the last moment in which they saw other roots.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from rootsd.core.labels import safe_label
from rootsd.core.paths import bytes_of, contains, text_of
from rootsd.wall.git.facts import names_in
from rootsd.wall.git.state_files import read_object, replace_object

CHANGES, START = b"/changes", b"/start.json"
"""The folder in that of a wall, and the file in it about a session that has not ended."""
_ENDED = b"/ended"
_MAX_ENDED = 256


def wall_folders(walls: bytes) -> Iterator[bytes]:
    """Yield the private folders of all walls."""
    for name in names_in(walls):
        for slot in names_in(walls + b"/" + name):
            if slot.isdigit():
                yield b"%s/%s/%s" % (walls, name, slot)


def program_of(folder: bytes) -> str:
    """Return the name of the sessions of a wall."""
    return safe_label(os.path.basename(os.path.dirname(folder)))


def note_end(folder: bytes, roots: Iterable[bytes], now: float) -> None:
    """Remember that the programs of a wall saw these roots until `now`. Raises OSError."""
    file = folder + CHANGES + _ENDED
    ends = dict(_ends_in(file))
    ends.update(dict.fromkeys(roots, now))
    newest = sorted(ends, key=lambda root: ends[root])[-_MAX_ENDED:]
    replace_object(file, {text_of(root): ends[root] for root in newest})


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
    found = read_object(file) or {}
    with suppress(TypeError, ValueError, AttributeError):
        return {bytes_of(root): float(end) for root, end in found.items()}
    return {}


def _running_in(file: bytes) -> list[bytes]:
    found = read_object(file) or {}
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        return [bytes_of(root) for root in found["roots"]]
    return []
