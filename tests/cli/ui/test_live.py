"""The link of the screen to a daemon that is away."""

from __future__ import annotations

import threading

import pytest

from rootsd.cli.ui.live import Away, LiveEvent, LiveLink
from rootsd.core.errors import DaemonUnreachable
from rootsd.wire.projects import ProjectsQuery

ATTEMPTS = 9


class Pauses(threading.Event):
    """An event that notes each wait instead of waiting, and is set after the last attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waited.append(timeout)
        if len(self.waited) == ATTEMPTS:
            self.set()
        return self.is_set()


def test_the_pauses_between_attempts_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered: list[LiveEvent] = []
    link, pauses = LiveLink(delivered.append), Pauses()
    monkeypatch.setattr(link, "_closing", pauses)
    link._keep_following()
    assert pauses.waited == sorted(pauses.waited)
    assert pauses.waited[0] < 0.1
    assert pauses.waited[-2:] == [5.0, 5.0]
    assert all(isinstance(event, Away) for event in delivered)


def test_a_closed_link_sends_nothing() -> None:
    link = LiveLink(print)
    link.close()
    with pytest.raises(DaemonUnreachable):
        link.call(ProjectsQuery("/"))
