"""The fallback says that it watches nothing, and how often to sweep instead."""

from __future__ import annotations

from rootsd.host.watch.events import Purpose, Watched
from rootsd.host.watch.polling import PollingWatcher, sweep_interval


def test_it_watches_nothing_and_says_so() -> None:
    watcher = PollingWatcher()
    watcher.start()
    assert watcher.watch(b"/", Purpose.FRONTIER) is Watched.UNSUPPORTED
    watcher.unwatch(b"/", Purpose.FRONTIER)
    assert watcher.count() == 0
    watcher.stop()


def test_a_costly_sweep_comes_less_often() -> None:
    assert sweep_interval(0.0) == 2.0
    assert sweep_interval(0.02) == 4.0
    assert sweep_interval(10.0) == 60.0
