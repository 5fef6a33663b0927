"""The notifications for each kind of subscriber."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp.server.context import ServerRequestContext
from mcp_types import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsListenRequestParams,
)

from rootsd.mcp.diff import PublishedDiff
from rootsd.mcp.subscriptions import NotificationThrottle, Subscribers
from rootsd.wire.jsonrpc import Notification, encode
from support.bridges import META_2026

NEWS = PublishedDiff(
    frozenset({"roots://approved", "roots://root/a", "roots://root/b"}),
    lists_resources=True,
    lists_roots=True,
    revokes=True,
)
ROOTS_CHANGED = encode(Notification("notifications/roots/list_changed"))
LISTS = SubscriptionFilter(resources_list_changed=True)
ONE = SubscriptionFilter(resource_subscriptions=["roots://root/b"])
RESOURCES_CHANGED = encode(Notification("notifications/resources/list_changed"))


def updated(uri: str, **more: object) -> bytes:
    return encode(Notification("notifications/resources/updated", {**more, "uri": uri}))


@dataclass
class Peer:
    """The context of a listening request, and its session: says nothing before it `reads`."""

    request_id: int
    reads: anyio.Event = field(default_factory=anyio.Event)
    acknowledged: list[SubscriptionFilter] = field(default_factory=list)

    @property
    def session(self) -> Peer:
        return self

    async def send_notification(
        self, notice: SubscriptionsAcknowledgedNotification, related_request_id: int
    ) -> None:
        assert related_request_id == self.request_id
        await self.reads.wait()
        self.acknowledged.append(notice.params.notifications)


async def listen(audience: Subscribers, peer: Peer, wanted: SubscriptionFilter) -> None:
    asked = SubscriptionsListenRequestParams.model_validate(
        {"_meta": META_2026, "notifications": wanted}
    )
    await audience.listen(cast("ServerRequestContext[Any, Any]", peer), asked)


def test_a_client_that_listed_roots_is_notified_of_roots_only() -> None:
    audience = Subscribers()
    audience.has_listed_roots = True
    assert list(audience.notifications_for(NEWS)) == [ROOTS_CHANGED]


def test_an_initialized_client_is_notified_of_the_list_and_of_its_subscriptions() -> None:
    audience = Subscribers()
    audience.initialized = True
    audience.subscribe("roots://root/b")
    audience.subscribe("roots://approved")
    audience.subscribe("roots://root/untouched")
    assert list(audience.notifications_for(NEWS)) == [
        RESOURCES_CHANGED,
        updated("roots://approved"),
        updated("roots://root/b"),
    ]
    audience.unsubscribe("roots://root/b")
    audience.unsubscribe("roots://never")
    assert list(audience.notifications_for(NEWS)) == [
        RESOURCES_CHANGED,
        updated("roots://approved"),
    ]


def test_subscriptions_wait_for_the_end_of_the_handshake() -> None:
    audience = Subscribers()
    audience.subscribe("roots://approved")
    assert list(audience.notifications_for(NEWS)) == []


def test_unchanged_resources_are_not_notified() -> None:
    audience = Subscribers()
    audience.has_listed_roots = audience.initialized = True
    news = PublishedDiff(
        frozenset({"roots://approved"}), lists_resources=True, lists_roots=False, revokes=False
    )
    assert list(audience.notifications_for(news)) == [RESOURCES_CHANGED]


async def test_each_stream_is_notified_of_its_filter_with_its_id() -> None:
    audience, lists, one = Subscribers(), Peer(1), Peer(2)
    async with anyio.create_task_group() as group:
        for peer in (lists, one):
            peer.reads.set()
        group.start_soon(listen, audience, lists, LISTS)
        group.start_soon(listen, audience, one, ONE)
        await checkpoint()
        await audience.wait_until_acknowledged()
        mine = [{"_meta": {"io.modelcontextprotocol/subscriptionId": id_}} for id_ in (1, 2)]
        assert list(audience.notifications_for(NEWS)) == [
            encode(Notification("notifications/resources/list_changed", mine[0])),
            updated("roots://root/b", **mine[1]),
        ]
        audience.close_streams()
    assert list(audience.notifications_for(NEWS)) == []
    assert one.acknowledged == [ONE]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_notifications_wait_for_the_acknowledgment_of_a_stream(is_cancelled: bool) -> None:
    audience, peer = Subscribers(), Peer(1)
    attended = anyio.Event()

    async def attend() -> None:
        await audience.wait_until_acknowledged()
        attended.set()

    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as stream:
            stream.start_soon(listen, audience, peer, LISTS)
            await checkpoint()
            group.start_soon(attend)
            for _ in range(3):
                await checkpoint()
            assert not attended.is_set()
            if is_cancelled:
                stream.cancel_scope.cancel()
            else:
                peer.reads.set()
                audience.close_streams()
        with anyio.fail_after(60):
            await attended.wait()


def test_only_an_addition_waits_and_only_for_the_rest_of_the_interval() -> None:
    pace = NotificationThrottle(0.5)
    assert pace.wait(1000.0, revokes=False) == 0
    pace.sent(1000.0)
    assert pace.wait(1000.125, revokes=False) == 0.375
    assert pace.wait(1000.0, revokes=True) == 0
    assert pace.wait(1000.5, revokes=False) == 0
    assert pace.wait(2000.0, revokes=False) == 0
