"""A discovery engine on the real kernel, without threads, to compare with a new engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rootsd.core.inputs import Observation, ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import Parent, ProjectKind
from rootsd.discovery.engine import DiscoveryEngine
from rootsd.processes.activity import FindFoldersInUse, folders_of_tools
from rootsd.watch.events import Watcher
from rootsd.watch.polling import PollingWatcher
from support.fake_watchers import Clock, PumpedInotify
from support.repositories import raw
from support.system_parts import folder_safety


class EngineHarness:
    """An engine on real inotify, without threads. `settle` reads the events."""

    def __init__(self, top: Path, *parents: Parent) -> None:
        self.top = top / "src"
        self.top.mkdir()
        self.clock = Clock()
        self.find_in_use: FindFoldersInUse = lambda _folders: frozenset()
        self.pumped = PumpedInotify(top / "barrier")
        self.parents = parents or (Parent(raw(self.top)),)
        self.engine = self.engine_on(self.pumped.watcher)
        self.reported: list[Observation] = []
        self._taken = 0
        self.settle()

    def close(self) -> None:
        """End all watches."""
        self.pumped.watcher.stop()

    def engine_on(self, watcher: Watcher) -> DiscoveryEngine:
        """Return an engine that has scanned the same parents."""
        safety = folder_safety()
        engine = DiscoveryEngine(
            watcher, safety, self._folders_in_use, self.clock, folders_of_tools
        )
        for tree in engine.set_parents(self.parents):
            engine.explore(tree)
        return engine

    def _folders_in_use(self, folders: Collection[bytes]) -> frozenset[bytes]:
        return self.find_in_use(folders)

    def settle(self) -> None:
        """Process events, and advance the clock, until nothing is left to do."""
        while True:
            batch = self.pumped.pump()
            self.engine.handle(batch)
            self.reported += self.engine.take()
            quiet = not batch
            quiet = run_down(self.engine, self.clock) and quiet
            if quiet:
                break
        self.reported += self.engine.take()
        self.engine.candidates.remove_unused_watches()

    def live(self) -> dict[str, ProjectKind]:
        """Return the existing projects, from the reports."""
        return {self.name(s.path): s.kind for s in self._live() if s.incomplete is None}

    def main_checkouts(self) -> dict[str, str | None]:
        """Return the main checkout of each existing project, from the reports."""
        return self._main_checkouts(self._live())

    def _main_checkouts(self, seen: Iterable[ProjectObserved]) -> dict[str, str | None]:
        return {
            self.name(each.path): self.name(each.main_checkout) if each.main_checkout else None
            for each in seen
            if each.incomplete is None
        }

    def _live(self) -> list[ProjectObserved]:
        live: dict[bytes, ProjectObserved] = {}
        for observation in self.reported:
            if isinstance(observation, ProjectObserved):
                live[observation.path] = observation
            elif isinstance(observation, ProjectGone | ProjectUnreachable):
                live.pop(observation.path, None)
        return list(live.values())

    def held(self) -> dict[str, ProjectKind]:
        """Return the existing projects that a tree has: none below another project."""
        trees = self.engine.trees
        return {
            name: kind
            for name, kind in self.live().items()
            if any(tree.has_project(raw(self.top / name)) for tree in trees)
        }

    def fresh(self) -> dict[str, ProjectKind]:
        """Return the projects that a new engine finds."""
        return {self.name(seen.path): seen.kind for seen in self._fresh()}

    def fresh_main_checkouts(self) -> dict[str, str | None]:
        """Return the main checkout of each project that a new engine finds."""
        return self._main_checkouts(self._fresh())

    def _fresh(self) -> list[ProjectObserved]:
        engine = self.engine_on(PollingWatcher())
        run_down(engine, self.clock)
        # The last report about a path counts.
        sighted = {o.path: o for o in engine.take() if isinstance(o, ProjectObserved)}
        return [each for each in sighted.values() if each.incomplete is None]

    def name(self, path: bytes) -> str:
        return os.path.relpath(os.fsdecode(path), self.top)

    def take(self) -> list[Observation]:
        """Settle, and return the reports since the last call."""
        self.settle()
        reported, self._taken = self.reported[self._taken :], len(self.reported)
        return reported


OpenWorld = Callable[..., EngineHarness]


@pytest.fixture
def open_world(tmp_path: Path) -> Iterator[OpenWorld]:
    """Return a function that creates a harness with the given parents."""
    with ExitStack() as stack:
        yield lambda *parents: stack.enter_context(closing(EngineHarness(tmp_path, *parents)))


@pytest.fixture
def world(open_world: OpenWorld) -> EngineHarness:
    """Return a harness with one parent."""
    return open_world()


def run_down(engine: DiscoveryEngine, clock: Clock) -> bool:
    """Do deferred work, and advance the clock until no candidate is due.

    Return whether there was nothing to do.
    """
    waited = engine.has_deferred_work()
    while engine.has_deferred_work():
        engine.catch_up(64)
    while (due := engine.next_due()) is not None:
        clock.now = max(clock.now, due)
        engine.tick()
        waited = True
    return not waited
