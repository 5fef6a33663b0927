"""What lies under the parents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rootsd.app.discovery.terrain import Terrain
from rootsd.core.model import Parent
from rootsd.host.watch.polling import PollingWatcher
from support.watching import RememberingWatcher

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def terrain() -> Iterator[Terrain]:
    terrain = Terrain(RememberingWatcher())
    yield terrain
    terrain.close()


def test_other_parents_and_mounts_inside_a_parent_are_not_entered(terrain: Terrain) -> None:
    stops = terrain.rules(Parent(b"/"), (b"/", b"/srv/other")).stops
    assert {b"/proc", b"/srv/other"} <= stops
    assert b"/srv/other" not in terrain.rules(Parent(b"/proc"), (b"/srv/other",)).stops


def test_a_local_disk_is_watched_and_answers(terrain: Terrain) -> None:
    assert not isinstance(terrain.watcher_for(Parent(b"/proc")), PollingWatcher)
    assert terrain.answers(b"/proc/self")
