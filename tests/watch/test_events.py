"""The events that watchers post."""

from __future__ import annotations

from rootsd.watch.events import EventOverflow, EventResolver, resolve_overflow


def test_an_overflow_is_resolved_without_a_watch() -> None:
    resolver: EventResolver = resolve_overflow
    assert resolver() == (EventOverflow(),)
