"""After random changes on the real kernel, the engine's state equals a fresh scan."""

from __future__ import annotations

import pytest

from rootsd.watch.events import EventOverflow
from rootsd.watch.polling import PollingWatcher
from support.engine_harness import EngineHarness
from support.random_changes import RandomChanges
from support.sizes import Sizes

pytestmark = pytest.mark.needs("linux")


def test_live_equals_fresh_after_random_changes(world: EngineHarness, sizes: Sizes) -> None:
    chaos = RandomChanges(world.top, seed=7)
    for number in range(sizes.pick(test=80, check=2_000, soak=6_000)):
        for _ in range(chaos.random.randint(1, 6)):
            chaos.step()
        if number % 10 == 9:
            world.engine.handle([EventOverflow()])
        world.settle()
        # No watch covers the inside of a repository; a sweep checks its top folder.
        world.engine.sweep()
        world.settle()
        assert world.held() == world.fresh()
    (tree,) = world.engine.trees
    folders = len(tree)
    (fresh,) = world.engine_on(PollingWatcher()).trees
    assert folders == len(fresh)
    guards_and_barrier = len(world.top.parents) + 1
    assert world.pumped.watcher.count() <= folders + guards_and_barrier
