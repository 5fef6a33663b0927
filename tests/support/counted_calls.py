"""Count the calls of functions, so that a test can show that work is done once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType


def count_calls(action: Callable[[], object]) -> Counter[str]:
    """Run `action` in this thread, and return how often it called each Python function.

    The keys are qualified names. Each time that a generator or coroutine goes on counts, too.
    """
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls
