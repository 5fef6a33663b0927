"""When to look at what nothing tells of: parents without watches, and what no watch covers."""

from __future__ import annotations

from collections.abc import Callable

from rootsd.app.discovery.explorer import Explorer
from rootsd.app.discovery.guards import can_return_heard
from rootsd.app.discovery.territory import Territory
from rootsd.host.watch.events import Watched
from rootsd.host.watch.polling import sweep_interval

ROOTS_SWEEP_S = 60.0
# Of a core, over time: 10 ms in a minute. A root that is published has a watch of its own.
ROOTS_SHARE = 0.01 / 60.0


class Sweeping:
    """Sweeps an explorer by the clock given. One thread calls all methods."""

    def __init__(self, explorer: Explorer, monotonic: Callable[[], float]) -> None:
        self._explorer = explorer
        self._now = monotonic
        self._parents: dict[bytes, float] = {}
        self._roots = monotonic() + ROOTS_SWEEP_S

    def due(self) -> float | None:
        """When `sweep_what_is_due` has something to do, on the clock given; None for never."""
        due = [self._roots] if self._explorer.has_anything() else []
        return min((*due, *self._parents.values()), default=None)

    def put_off(self, seconds: float) -> None:
        """Look at what no watch covers that much later."""
        self._roots += seconds

    def sweep_what_is_due(self) -> None:
        """Sweep the parents that are polled, and the rest, if it is time to."""
        now = self._now()
        polled = [t for t in self._explorer.territories if _is_to_be_polled(t)]
        first = now + sweep_interval(0.0)
        self._parents = {t.parent.path: self._parents.get(t.parent.path, first) for t in polled}
        for territory in polled:
            path = territory.parent.path
            if now >= self._parents[path]:
                self._explorer.revisit(territory)
                end = self._now()
                # To find out that somebody does not answer takes time, and no work.
                cost = end - now if territory.limit is not Watched.SILENT else 0.0
                self._parents[path] = end + sweep_interval(cost)
        if now >= self._roots:
            self._explorer.sweep()
            end = self._now()
            self._roots = end + max(ROOTS_SWEEP_S, (end - now) / ROOTS_SHARE)


def _is_to_be_polled(territory: Territory) -> bool:
    if territory.limit is not None:
        return True
    return not territory.is_there and not can_return_heard(territory.parent.path)
