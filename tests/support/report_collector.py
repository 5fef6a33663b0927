"""Collect the reports of discovery, and wait for them without sleeping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.discovery.status import ParentReport

# A guard against hangs only; no test waits this long when it passes.
HANG_S = 30.0


class ReportCollector:
    """Provides the callbacks `report`, `on_status`, and `on_death` for discovery."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.all: list[Observation] = []
        self.status: tuple[ParentReport, ...] = ()
        self._has_died = False

    def report(self, observations: Sequence[Observation]) -> None:
        """Take a batch of reports."""
        with self._changed:
            self.all += observations
            self._changed.notify_all()

    def on_status(self, status: tuple[ParentReport, ...]) -> None:
        """Take the newest status."""
        with self._changed:
            self.status = status
            self._changed.notify_all()

    def on_death(self) -> None:
        """Note that a bug ended discovery, so that nobody waits for it."""
        with self._changed:
            self._has_died = True
            self._changed.notify_all()

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` returns true. It is called after each batch and each status."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_died or holds(), HANG_S)
            if not holds():
                raise AssertionError(f"never came: {self.all} {self.status}")

    def live(self) -> dict[bytes, ProjectObserved]:
        """Return the existing projects, from the latest report on each path."""
        live: dict[bytes, ProjectObserved] = {}
        for observation in self.all:
            if isinstance(observation, ProjectObserved):
                live[observation.path] = observation
            elif isinstance(observation, ProjectGone | ProjectUnreachable):
                live.pop(observation.path, None)
        return live

    def wait_for(self, *paths: bytes) -> None:
        """Wait until exactly these projects exist and are complete."""
        self.wait(
            lambda: {p for p, seen in self.live().items() if not seen.incomplete} == set(paths)
        )

    def sightings_of(self, path: bytes) -> list[ProjectObserved]:
        """Return every report of `path` as a project."""
        return [o for o in self.all if isinstance(o, ProjectObserved) and o.path == path]


class ProposalTimes(ReportCollector):
    """Records when each path was first reported as complete, by `clock`."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__()
        self._clock = clock
        self.whole_at: dict[bytes, float] = {}

    def report(self, observations: Sequence[Observation]) -> None:
        now = self._clock()
        for seen in observations:
            if isinstance(seen, ProjectObserved) and seen.incomplete is None:
                self.whole_at.setdefault(seen.path, now)
        super().report(observations)
