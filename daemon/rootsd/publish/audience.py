"""Who on one connection wants to be told of changes, and in which words.

Three kinds of listeners can sit on one connection, at the same time: a client of the handshake
era with its `resources/subscribe`, streams of `subscriptions/listen` (2026-07-28), and an author's
own client that asked `roots/list`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from rootsd.publish.difference import Difference
from rootsd.wire.jsonrpc import Notice, encode

_MAX_STREAMS = 16
# Room for one event per root: a stream whose client reads must not end at a large change.
_MAX_BACKLOG = 1 << 14

_RESOURCES_CHANGED = encode(Notice("notifications/resources/list_changed"))
_ROOTS_CHANGED = encode(Notice("notifications/roots/list_changed"))


class _Bus:
    """The SDK's SubscriptionBus for one connection; without a checkpoint per event."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    async def publish(self, event: ServerEvent) -> None:
        self.tell([event])

    def tell(self, events: list[ServerEvent]) -> None:
        for listener in tuple(self._listeners.values()):
            for event in events:
                listener(event)

    def __bool__(self) -> bool:
        return bool(self._listeners)


class Audience:
    """The listeners of one connection. `initialized` and `asked_roots` are set by what it says."""

    def __init__(self) -> None:
        self.initialized = False
        self.asked_roots = False
        self._subscribed: set[str] = set()
        self._bus = _Bus()
        self._streams = ListenHandler(
            self._bus, max_subscriptions=_MAX_STREAMS, max_buffered_events=_MAX_BACKLOG
        )

    def subscribe(self, uri: str) -> None:
        """Tell of changes of the resource from now on (handshake era)."""
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """Tell of them no longer."""
        self._subscribed.discard(uri)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of `subscriptions/listen` until it is cancelled or closed."""
        return await self._streams(ctx, params)

    def close_streams(self) -> None:
        """End every stream with the result that says so."""
        self._streams.close()

    def announce(self, news: Difference) -> Iterator[bytes]:
        """Hand the news to the streams, and yield the lines that go out without one."""
        if self._bus:
            self._bus.tell(_events(news))
        if self.asked_roots and news.lists_roots:
            yield _ROOTS_CHANGED
        if not self.initialized:  # before that, a server may say nothing but ping and log
            return
        if news.lists_resources:
            yield _RESOURCES_CHANGED
        for uri in sorted(self._subscribed & news.resources):
            yield _updated(uri)


@lru_cache(maxsize=1024)
def _updated(uri: str) -> bytes:
    return encode(Notice("notifications/resources/updated", {"uri": uri}))


def _events(news: Difference) -> list[ServerEvent]:
    events: list[ServerEvent] = [ResourceUpdated(uri=uri) for uri in sorted(news.resources)]
    if news.lists_resources:
        events.append(ResourcesListChanged())
    return events
