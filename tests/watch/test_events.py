"""The events that watchers post."""

from __future__ import annotations

from rootsd.watch.events import EventOverflow, EventResolver, resolve_overflow


def test_an_overflow_needs_no_watch_to_be_resolved() -> None:
    signal: EventResolver = resolve_overflow
    assert signal() == (EventOverflow(),)
