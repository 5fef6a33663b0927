"""Repeat a check until it holds. The machine decides how often; a test must not depend on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

HANG_GUARD = 60
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.2

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen]) -> Seen:
    """Return the first true answer of `look`.

    After each look it pauses four times as long as the look took. So most of the time is left to
    what it waits for, and to the other tests of the run.
    """
    end = time.monotonic() + HANG_GUARD
    pause = Event()
    while True:
        began = time.monotonic()
        if seen := look():
            return seen
        now = time.monotonic()
        assert now < end, f"still {seen!r}"
        pause.wait(min(max(4 * (now - began), _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S))


def until_won(race: Callable[[], Seen]) -> Seen:
    """Return the first true answer of `race`, repeated without a pause.

    What it races against runs all the time. So a pause would give that one the processor, for
    nothing.
    """
    end = time.monotonic() + HANG_GUARD
    while not (won := race()):
        assert time.monotonic() < end, "the race was never won"
    return won
