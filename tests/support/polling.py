"""Repeat a check until it holds. The machine decides how often; a test must not depend on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

HANG_GUARD = 60

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen]) -> Seen:
    """Return the first true answer of `look`. Each call of `look` takes some time by itself."""
    end = time.monotonic() + HANG_GUARD
    while not (seen := look()):
        assert time.monotonic() < end, f"still {seen!r}"
    return seen
