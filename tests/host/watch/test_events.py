"""The values that watchers pass on."""

from __future__ import annotations

from rootsd.host.watch.events import Overflow, Signal


def test_an_overflow_needs_no_watch_to_be_resolved() -> None:
    signal: Signal = Overflow
    assert signal() == Overflow()
