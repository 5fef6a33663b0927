"""Where the walk of a parent stops because of mounts and other parents."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.core.model import Parent
from rootsd.discovery.mount_context import MountContext
from rootsd.disk import mounts
from rootsd.watch.polling import PollingWatcher
from support.fake_watchers import RecordingWatcher
from support.repositories import raw

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def mount_context() -> MountContext:
    return MountContext(RecordingWatcher(), mounts.process_mounts(), lambda _path: True)


def test_other_parents_and_mounts_inside_a_parent_are_not_entered(
    mount_context: MountContext,
) -> None:
    stops = mount_context.rules(Parent(b"/"), (b"/", b"/srv/other")).stops
    assert {b"/proc", b"/srv/other"} <= stops.keys()
    assert b"/srv/other" not in mount_context.rules(Parent(b"/proc"), (b"/srv/other",)).stops


def test_a_local_disk_is_watched_and_responsive(mount_context: MountContext) -> None:
    assert not isinstance(mount_context.watcher_for(Parent(b"/proc")), PollingWatcher)
    assert mount_context.responds(b"/proc/self")


def test_without_a_list_of_mounts_a_walk_stays_on_one_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mounts, "MOUNTINFO", b"/nowhere")
    mount_context = MountContext(RecordingWatcher(), mounts.MountTable(), lambda _path: True)
    parent = Parent(raw(tmp_path))
    assert mount_context.rules(parent, ()).device == tmp_path.stat().st_dev
    assert mount_context.rules(Parent(raw(tmp_path / "none")), ()).device is None


def test_with_a_list_of_mounts_devices_do_not_matter(
    mount_context: MountContext, tmp_path: Path
) -> None:
    assert mount_context.rules(Parent(raw(tmp_path)), ()).device is None
