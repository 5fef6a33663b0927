"""The link of the screen to a daemon that is away."""

from __future__ import annotations

from pathlib import Path
from queue import Queue

import pytest

from rootsd.cli.ui.live import LiveLink
from rootsd.core.errors import DaemonUnreachable
from rootsd.wire.feed import Away, Changed, FeedEvent
from rootsd.wire.projects import ProjectsQuery
from support.live_daemon import LiveDaemon, an_update
from support.polling import until

HANG_GUARD_S = 30


def test_a_closed_link_sends_nothing() -> None:
    link = LiveLink(print)
    link.close()
    with pytest.raises(DaemonUnreachable):
        link.call(ProjectsQuery("/"))


def test_it_finds_a_daemon_that_comes_later_and_ends_at_once(rootsd_dir: Path) -> None:
    events = Queue[FeedEvent]()
    link = LiveLink(events.put)
    link.start()
    assert isinstance(events.get(timeout=HANG_GUARD_S), Away)
    with LiveDaemon(rootsd_dir, [an_update()]):
        while not isinstance(events.get(timeout=HANG_GUARD_S), Changed):
            pass
        link.close()
        until(lambda: not link._thread.is_alive())
