"""The polling watcher, and the interval of polls."""

from __future__ import annotations

from rootsd.watch.events import WatchOutcome, WatchPurpose
from rootsd.watch.polling import PollingWatcher, poll_interval


def test_a_polling_watcher_returns_why_it_watches_nothing() -> None:
    watcher = PollingWatcher()
    watcher.start()
    assert watcher.watch(b"/", WatchPurpose.FRONTIER) is WatchOutcome.UNSUPPORTED
    watcher.unwatch(b"/", WatchPurpose.FRONTIER)
    assert watcher.count() == 0
    watcher.stop()


def test_a_costly_poll_runs_less_often() -> None:
    assert poll_interval(0.0) == 2.0
    assert poll_interval(0.02) == 4.0
    assert poll_interval(10.0) == 60.0
