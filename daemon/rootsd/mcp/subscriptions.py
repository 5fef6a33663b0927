"""Notify the subscribers on one connection of changes, at a bounded rate.

Who on one connection wants to be told of changes, and in which words.

Three kinds of listeners can sit on one connection, at the same time: a client of the handshake
era with its `resources/subscribe`, streams of `subscriptions/listen` (2026-07-28), and an author's
own client that asked `roots/list`. All that a connection is told of a change leaves in one piece:
the SDK's own ListenHandler would have a task, a model and a write for each notice of each stream,
which made up most of what it took to tell a hundred sessions.

When the next notice may go out: the first at once, then at most one per interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from rootsd.mcp.diff import PublishedDiff
from rootsd.wire.jsonrpc import INTERNAL_ERROR, Notification, encode

_MAX_STREAMS = 16

# MCP 2026-07-28, "Subscriptions": each notification on a stream carries the id of its request.
_SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"

_UPDATED = "notifications/resources/updated"
_LIST_CHANGED = "notifications/resources/list_changed"
_RESOURCES_CHANGED = encode(Notification(_LIST_CHANGED))
_ROOTS_CHANGED = encode(Notification("notifications/roots/list_changed"))


class Subscribers:
    """The listeners of one connection. `initialized` and `asked_roots` are set by what it says."""

    def __init__(self) -> None:
        self.initialized = False
        self.asked_roots = False
        self._subscribed: set[str] = set()
        self._streams: list[_ListenStream] = []

    def subscribe(self, uri: str) -> None:
        """Tell of changes of the resource from now on (handshake era)."""
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """Tell of them no longer."""
        self._subscribed.discard(uri)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of `subscriptions/listen` until it is cancelled or closed. Raises
        MCPError where too many are open."""
        if len(self._streams) >= _MAX_STREAMS:
            reason = f"{_MAX_STREAMS} streams are open on this connection"
            raise MCPError(INTERNAL_ERROR, "too many streams", {"reason": reason})
        stream = _ListenStream(ctx, params.notifications)
        self._streams.append(stream)
        try:
            await stream.serve()
        finally:
            self._streams.remove(stream)
        return SubscriptionsListenResult(_meta=stream.meta)

    def close_streams(self) -> None:
        """End every stream with the result that says so."""
        for stream in self._streams:
            stream.closed.set()

    async def attend(self) -> None:
        """Return once all can be told of news: a stream's first line acknowledges it."""
        for stream in tuple(self._streams):
            await stream.begun.wait()

    def announce(self, news: PublishedDiff) -> Iterator[bytes]:
        """The lines that tell of the news."""
        for stream in self._streams:
            yield from stream.announce(news)
        if self.asked_roots and news.lists_roots:
            yield _ROOTS_CHANGED
        if not self.initialized:  # before that, a server may say nothing but ping and log
            return
        if news.lists_resources:
            yield _RESOURCES_CHANGED
        for uri in sorted(self._subscribed & news.resources):
            yield _encode_updated(uri)


class _ListenStream:
    """One `subscriptions/listen`; `begun` is set when it is acknowledged, or will never be."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], wanted: SubscriptionFilter) -> None:
        self.meta: dict[str, Any] = {_SUBSCRIPTION_ID_KEY: ctx.request_id}
        self.begun = anyio.Event()
        self.closed = anyio.Event()
        self._ctx = ctx
        self._wanted = wanted
        self._uris = frozenset(wanted.resource_subscriptions or ())

    async def serve(self) -> None:
        """Acknowledge it, and return when it is closed."""
        try:
            await self._ctx.session.send_notification(
                SubscriptionsAcknowledgedNotification(
                    params=SubscriptionsAcknowledgedNotificationParams(
                        notifications=_accepted_filter(self._wanted), _meta=self.meta
                    )
                ),
                related_request_id=self._ctx.request_id,
            )
        finally:
            self.begun.set()
        await self.closed.wait()

    def announce(self, news: PublishedDiff) -> Iterator[bytes]:
        for uri in sorted(self._uris & news.resources):
            yield encode(Notification(_UPDATED, {"_meta": self.meta, "uri": uri}))
        if self._wanted.resources_list_changed and news.lists_resources:
            yield encode(Notification(_LIST_CHANGED, {"_meta": self.meta}))


def _accepted_filter(wanted: SubscriptionFilter) -> SubscriptionFilter:
    """What was asked for, of what the protocol knows; that the tools changed is never told, and
    true all the same."""
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed or None,
        prompts_list_changed=wanted.prompts_list_changed or None,
        resources_list_changed=wanted.resources_list_changed or None,
        resource_subscriptions=wanted.resource_subscriptions or None,
    )


@lru_cache(maxsize=1024)
def _encode_updated(uri: str) -> bytes:
    return encode(Notification(_UPDATED, {"uri": uri}))


CHANGE_NOTIFICATION_INTERVAL_S = 0.05


class NotificationThrottle:
    """Spaces notices of additions. A revoke never waits: a client that acts on a root it may no
    longer use does more harm than one notice too many. Times are seconds of a monotonic clock."""

    def __init__(self, interval: float = CHANGE_NOTIFICATION_INTERVAL_S) -> None:
        self._interval = interval
        self._last = -math.inf

    def wait(self, now: float, *, revokes: bool) -> float:
        """How many seconds to hold a notice back; 0 where it goes at once."""
        return 0.0 if revokes else max(0.0, self._last + self._interval - now)

    def sent(self, now: float) -> None:
        """Note that a notice went out."""
        self._last = now
