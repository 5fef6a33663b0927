"""Bound the requests for folders of each asker, so that one cannot use up the places of all.

The daemon tells an asker nothing about the folders that it may not disclose. So the bound counts
what was asked for and not answered, whatever became of it: a request that was dropped counts like
one that a person has not decided about yet. After `FORGOTTEN_AFTER_S`, it no longer counts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from msgspec import Struct, field

from rootsd.core.errors import Busy
from rootsd.core.throttle import TokenBucket

FORGOTTEN_AFTER_S = 3600.0
_MOST_ASKERS = 1024

Asker = tuple[str, ...]


class RootRequestLimits(Struct, frozen=True):
    """How many folders clients may request."""

    burst: int = 40
    per_second: float = 1.0
    """How often all clients together may ask."""
    own_burst: int = 10
    own_per_second: float = 1 / 6
    """How often one asker may ask."""
    own_unanswered: int = 8
    """How many folders one asker may ask for before it gets an answer."""
    max_pending: int = 64
    """How many requested folders may be pending at a time."""
    max_askers: int = 8
    """How many sessions may request the same folder at a time."""


class _Asked(Struct):
    """What one asker has asked for.

    `first` has, for each path, the time of the first request, and a function that tells whether
    the asker knows what a person decided about it.
    """

    bucket: TokenBucket
    first: dict[bytes, tuple[float, Callable[[], bool]]] = field(default_factory=dict)


class RequestBounds:
    """Admits requests. `clock` returns seconds that never go back."""

    def __init__(self, limits: RootRequestLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._all = TokenBucket(limits.burst, limits.per_second)
        self._askers: dict[Asker, _Asked] = {}

    def admit(self, asker: Asker, path: bytes, is_answered: Callable[[], bool]) -> None:
        """Count a request. Raises Busy with the reason if the asker has to wait.

        `is_answered` tells later whether the asker knows what a person decided about it.
        """
        now, limits = self._clock(), self._limits
        asked = self._asked_by(asker)
        for known, (since, has_answer) in tuple(asked.first.items()):
            if now - since > FORGOTTEN_AFTER_S or has_answer():
                del asked.first[known]
        if path not in asked.first and len(asked.first) >= limits.own_unanswered:
            raise Busy(
                f"this program has asked for {len(asked.first)} folders and has no answer yet;"
                " wait until the user decides about them"
            )
        wait = asked.bucket.wait(now) or self._all.wait(now)
        if wait:
            raise Busy(f"too many requests for folders; try again in {ceil(wait)} seconds")
        asked.first.setdefault(path, (now, is_answered))

    def _asked_by(self, asker: Asker) -> _Asked:
        limits = self._limits
        asked = self._askers.pop(asker, None)
        if asked is None:
            asked = _Asked(TokenBucket(limits.own_burst, limits.own_per_second))
        self._askers[asker] = asked
        if len(self._askers) > _MOST_ASKERS:
            del self._askers[next(iter(self._askers))]
        return asked
