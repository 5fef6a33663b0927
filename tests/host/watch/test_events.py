"""The values that watchers pass on."""

from __future__ import annotations

from rootsd.host.watch.events import Overflow, Signal, overflowed


def test_an_overflow_needs_no_watch_to_be_resolved() -> None:
    signal: Signal = overflowed
    assert signal() == (Overflow(),)
