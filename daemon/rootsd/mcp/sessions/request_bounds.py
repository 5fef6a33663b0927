"""Bound the requests for folders of each asker, so that one cannot use up the places of all.

The daemon tells an asker nothing about the folders that it may not disclose. So the bound counts
what was asked for and not answered, whatever became of it: a request that was dropped counts like
one that a person has not decided about yet. After `FORGOTTEN_AFTER_S`, it no longer counts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Generic, Protocol, TypeVar

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


class BoundedRequest(Protocol):
    """A request for a folder, as far as the bounds know it."""

    @property
    def path(self) -> bytes:
        """The folder."""

    @property
    def asker(self) -> Asker:
        """What is the same in all requests of one asker."""


RequestT = TypeVar("RequestT", bound=BoundedRequest)


class _Asked(Struct, Generic[RequestT]):
    """What one asker has asked for: the first request for each path, and its time."""

    bucket: TokenBucket
    first: dict[bytes, tuple[float, RequestT]] = field(default_factory=dict)


class RequestBounds(Generic[RequestT]):
    """Admits requests. `clock` returns seconds that never go back.

    `is_answered` tells whether the asker knows what a person decided about its request.
    """

    def __init__(
        self,
        limits: RootRequestLimits,
        clock: Callable[[], float],
        is_answered: Callable[[RequestT], bool],
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._is_answered = is_answered
        self._all = TokenBucket(limits.burst, limits.per_second)
        self._askers: dict[Asker, _Asked[RequestT]] = {}

    def admit(self, request: RequestT) -> None:
        """Count a request. Raises Busy with the reason if the asker has to wait."""
        now, limits = self._clock(), self._limits
        asked = self._asked_by(request.asker)
        for path, (since, earlier) in tuple(asked.first.items()):
            if now - since > FORGOTTEN_AFTER_S or self._is_answered(earlier):
                del asked.first[path]
        if request.path not in asked.first and len(asked.first) >= limits.own_unanswered:
            raise Busy(
                f"this program has asked for {len(asked.first)} folders and has no answer yet;"
                " wait until the user decides about them"
            )
        wait = asked.bucket.wait(now) or self._all.wait(now)
        if wait:
            raise Busy(f"too many requests for folders; try again in {ceil(wait)} seconds")
        asked.first.setdefault(request.path, (now, request))

    def _asked_by(self, asker: Asker) -> _Asked[RequestT]:
        limits = self._limits
        asked = self._askers.pop(asker, None)
        if asked is None:
            asked = _Asked(TokenBucket(limits.own_burst, limits.own_per_second))
        self._askers[asker] = asked
        if len(self._askers) > _MOST_ASKERS:
            del self._askers[next(iter(self._askers))]
        return asked
