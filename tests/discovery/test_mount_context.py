"""What lies under the parents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.model import Parent
from rootsd.discovery.mount_context import MountContext
from rootsd.disk import mounts
from rootsd.watch.polling import PollingWatcher
from support.repos import raw
from support.watching import RememberingWatcher

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def terrain() -> Iterator[MountContext]:
    terrain = MountContext(RememberingWatcher())
    yield terrain
    terrain.close()


def test_other_parents_and_mounts_inside_a_parent_are_not_entered(terrain: MountContext) -> None:
    stops = terrain.rules(Parent(b"/"), (b"/", b"/srv/other")).stops
    assert {b"/proc", b"/srv/other"} <= stops
    assert b"/srv/other" not in terrain.rules(Parent(b"/proc"), (b"/srv/other",)).stops


def test_a_local_disk_is_watched_and_answers(terrain: MountContext) -> None:
    assert not isinstance(terrain.watcher_for(Parent(b"/proc")), PollingWatcher)
    assert terrain.answers(b"/proc/self")


def test_where_no_mounts_are_told_a_walk_stays_on_the_device_of_the_parent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mounts, "MOUNTINFO", b"/nowhere")
    monkeypatch.setattr(mounts, "MOUNTINFO", b"/nowhere")
    terrain = MountContext(RememberingWatcher())
    parent = Parent(raw(tmp_path))
    assert terrain.rules(parent, ()).device == tmp_path.stat().st_dev
    assert terrain.rules(Parent(raw(tmp_path / "none")), ()).device is None
    terrain.close()


def test_where_mounts_are_told_they_are_enough(terrain: MountContext, tmp_path: Path) -> None:
    assert terrain.rules(Parent(raw(tmp_path)), ()).device is None
