"""Wait a moment before a repository without its marker counts as no repository.

`rm -rf` and `git worktree remove` delete the `.git` of a checkout before its folder. A check in
between would report that the folder lost its repository, and not that it is gone. So discovery
lists the folder after a short delay, and later if a process still works there.
"""

from __future__ import annotations

from collections.abc import Callable

from rootsd.processes.activity import FindFoldersInUse

_DELAY_S = 0.2
_MAX_DELAY_S = 10.0


class Departures:
    """The repositories that lost a marker a moment ago. One thread calls all methods."""

    def __init__(self, find_in_use: FindFoldersInUse, monotonic: Callable[[], float]) -> None:
        self._find_in_use = find_in_use
        self._now = monotonic
        self._all: dict[bytes, tuple[float, float]] = {}

    def add(self, path: bytes) -> None:
        """Note that a marker in the folder `path` is gone."""
        now = self._now()
        _, since = self._all.get(path, (now, now))
        self._all[path] = (now + _DELAY_S, since)

    def drop(self, path: bytes) -> None:
        """Forget a folder that is gone itself."""
        self._all.pop(path, None)

    def next_due(self) -> float | None:
        """Return when `take_due` has a folder, on the monotonic clock, or None."""
        return min((due for due, _ in self._all.values()), default=None)

    def take_due(self) -> list[bytes]:
        """Return the folders to list now, and forget them."""
        now = self._now()
        due = {path: since for path, (when, since) in self._all.items() if when <= now}
        if not due:
            return []
        in_use = self._find_in_use(due.keys())
        ready = [p for p, since in due.items() if p not in in_use or now >= since + _MAX_DELAY_S]
        for path in ready:
            del self._all[path]
        for path in due.keys() - set(ready):
            self._all[path] = (now + _DELAY_S, due[path])
        return ready
