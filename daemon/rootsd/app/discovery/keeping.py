"""When the trees of the parents are written down, and who gets them back at the next start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from rootsd.app.discovery.territory import Territory
from rootsd.host.disk.index import KeptTree, read_index, write_index

log = logging.getLogger(__name__)

# A restart after a crash lists what moved since; minutes of that cost nothing.
KEEP_EVERY_S = 300.0


class Keeping:
    """Keeps trees in a file, or nothing where there is none. One thread calls all methods."""

    def __init__(self, file: Path | None, monotonic: Callable[[], float]) -> None:
        self._file = file
        self._now = monotonic
        self._memory: dict[bytes, KeptTree] | None = None
        self._kept: dict[bytes, tuple[Territory, int]] = {}
        self._due = monotonic() + KEEP_EVERY_S

    def remind(self, territory: Territory) -> None:
        """Give a parent's tree, once, what was kept of it in an earlier life."""
        if self._memory is None:
            self._memory = read_index(self._file) if self._file is not None else {}
        territory.remember(self._memory.pop(territory.parent.path, None))

    def due(self) -> float | None:
        """When `keep_if_due` has something to do, on the clock given; None if there is no file."""
        return self._due if self._file is not None else None

    def keep_if_due(self, territories: Iterable[Territory]) -> None:
        """Write the trees down, unless that was done a short time ago."""
        if self._now() >= self._due:
            self.keep(territories)

    def keep(self, territories: Iterable[Territory]) -> None:
        """Write the trees down if they changed. A disk that takes nothing more is no reason to
        stop: without the file, the next start scans."""
        self._due = self._now() + KEEP_EVERY_S
        changes = {t.parent.path: (t, t.changes) for t in territories}
        if self._file is None or changes == self._kept:
            return
        trees = {path: tree for path, (t, _) in changes.items() if (tree := t.kept()) is not None}
        try:
            write_index(self._file, trees)
        except OSError as error:
            log.warning("the index for a quick start cannot be kept: %s", error.strerror)
        self._kept = changes
