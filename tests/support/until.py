"""Asking again until it is so: how often is up to the machine, and no test may count on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

HANG_GUARD = 60

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen]) -> Seen:
    """The first answer of `look` that is true; each look takes a while of its own."""
    end = time.monotonic() + HANG_GUARD
    while not (seen := look()):
        assert time.monotonic() < end, f"still {seen!r}"
    return seen
