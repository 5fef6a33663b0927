"""Notify the subscribers on one connection of changes, at a bounded rate.

Three kinds of subscribers can share one connection: a client that used `initialize` and
`resources/subscribe`, streams of `subscriptions/listen` (MCP 2026-07-28), and a client that called
`roots/list`. One write sends all notifications of one change. The SDK's own ListenHandler needs a
task, a model, and a write for each notification of each stream. That took most of the time when a
hundred sessions were notified.

The first notification is sent at once. After that, additions wait, so that at most one
notification per interval is sent.
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
from rootsd.wire.jsonrpc import INTERNAL_ERROR, Id, Notification, encode

_MAX_STREAMS = 16

# MCP 2026-07-28, "Subscriptions": each notification on a stream carries the id of its request.
_SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"
_UPDATED = "notifications/resources/updated"
_LIST_CHANGED = "notifications/resources/list_changed"
_RESOURCES_CHANGED = encode(Notification(_LIST_CHANGED))
_ROOTS_CHANGED = encode(Notification("notifications/roots/list_changed"))


class Subscribers:
    """The subscribers on one connection.

    The router sets `initialized` and `has_listed_roots` when the client sends these messages.
    """

    def __init__(self) -> None:
        self.initialized = False
        self.has_listed_roots = False
        self._subscribed: set[str] = set()
        self._streams: list[_ListenStream] = []

    def subscribe(self, uri: str) -> None:
        """Notify of changes of the resource from now on (before MCP 2026-07-28)."""
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """Stop notifying of changes of the resource."""
        self._subscribed.discard(uri)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream of `subscriptions/listen` until it is canceled or closed.

        Raises MCPError if too many streams are open.
        """
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
        """End every stream with its result."""
        for stream in self._streams:
            stream.closed.set()

    async def wait_until_acknowledged(self) -> None:
        """Wait until each stream is acknowledged, which must be the first line of a stream."""
        for stream in tuple(self._streams):
            if not stream.acknowledged.is_set():  # otherwise `wait` would yield to other tasks
                await stream.acknowledged.wait()

    def notifications_for(self, diff: PublishedDiff) -> Iterator[bytes]:
        """Yield the lines that notify all subscribers of the change."""
        for stream in self._streams:
            yield from stream.notifications_for(diff)
        if self.has_listed_roots and diff.lists_roots:
            yield _ROOTS_CHANGED
        if not self.initialized:  # until then, a server may send only pings and log messages
            return
        if diff.lists_resources:
            yield _RESOURCES_CHANGED
        for uri in sorted(self._subscribed & diff.resources):
            yield _encode_updated(uri)


class _ListenStream:
    """One request `subscriptions/listen`.

    `acknowledged` is set when the acknowledgment was sent, or could not be sent.
    """

    def __init__(self, ctx: ServerRequestContext[Any, Any], wanted: SubscriptionFilter) -> None:
        self.meta: dict[str, Any] = {_SUBSCRIPTION_ID_KEY: ctx.request_id}
        self.acknowledged = anyio.Event()
        self.closed = anyio.Event()
        self._ctx = ctx
        self._wanted = wanted
        self._uris = frozenset(wanted.resource_subscriptions or ())

    async def serve(self) -> None:
        """Acknowledge the stream, and return when it is closed."""
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
            self.acknowledged.set()
        await self.closed.wait()

    def notifications_for(self, diff: PublishedDiff) -> Iterator[bytes]:
        for uri in sorted(self._uris & diff.resources):
            yield _encode_updated(uri, self._ctx.request_id)
        if self._wanted.resources_list_changed and diff.lists_resources:
            yield encode(Notification(_LIST_CHANGED, {"_meta": self.meta}))


def _accepted_filter(wanted: SubscriptionFilter) -> SubscriptionFilter:
    """Return the part of the filter that the protocol knows.

    Changes of the tools are accepted as well. They never happen, so no notification is missing.
    """
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed or None,
        prompts_list_changed=wanted.prompts_list_changed or None,
        resources_list_changed=wanted.resources_list_changed or None,
        resource_subscriptions=wanted.resource_subscriptions or None,
    )


@lru_cache(maxsize=128)
def _encode_updated(uri: str, stream: Id | None = None) -> bytes:
    """Return the line for a change of `uri`, for the stream with this id if there is one.

    Cached, because many sessions get the same line: clients often use the same ids. The cache is
    small, because a client can choose an id of MAX_REQUEST_BYTES.
    """
    meta = {} if stream is None else {"_meta": {_SUBSCRIPTION_ID_KEY: stream}}
    return encode(Notification(_UPDATED, {**meta, "uri": uri}))


CHANGE_NOTIFICATION_INTERVAL_S = 0.05


class NotificationThrottle:
    """A throttle for notifications of additions. Times are seconds of a monotonic clock.

    Revocations never wait, because a client that uses a revoked root does more harm than one more
    notification.
    """

    def __init__(self, interval: float = CHANGE_NOTIFICATION_INTERVAL_S) -> None:
        self._interval = interval
        self._last = -math.inf

    def wait(self, now: float, *, revokes: bool) -> float:
        """Return how many seconds to delay a notification; 0 to send it at once."""
        return 0.0 if revokes else max(0.0, self._last + self._interval - now)

    def sent(self, now: float) -> None:
        """Note that a notification was sent."""
        self._last = now
