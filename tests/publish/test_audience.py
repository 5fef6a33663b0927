"""Who on a connection is told what."""

from __future__ import annotations

from rootsd.publish.audience import Audience
from rootsd.publish.difference import Difference
from rootsd.wire.jsonrpc import Notice, encode

NEWS = Difference(
    frozenset({"roots://approved", "roots://root/a", "roots://root/b"}),
    lists_resources=True,
    lists_roots=True,
    revokes=True,
)
ROOTS_CHANGED = encode(Notice("notifications/roots/list_changed"))
RESOURCES_CHANGED = encode(Notice("notifications/resources/list_changed"))


def updated(uri: str) -> bytes:
    return encode(Notice("notifications/resources/updated", {"uri": uri}))


def test_nobody_is_told_anything_unasked() -> None:
    assert list(Audience().announce(NEWS)) == []


def test_an_author_who_asked_for_roots_is_told_of_roots_alone() -> None:
    audience = Audience()
    audience.asked_roots = True
    assert list(audience.announce(NEWS)) == [ROOTS_CHANGED]


def test_a_client_past_its_handshake_is_told_of_the_list_and_of_what_it_subscribed_to() -> None:
    audience = Audience()
    audience.initialized = True
    audience.subscribe("roots://root/b")
    audience.subscribe("roots://approved")
    audience.subscribe("roots://root/untouched")
    assert list(audience.announce(NEWS)) == [
        RESOURCES_CHANGED,
        updated("roots://approved"),
        updated("roots://root/b"),
    ]
    audience.unsubscribe("roots://root/b")
    audience.unsubscribe("roots://never")
    assert list(audience.announce(NEWS)) == [RESOURCES_CHANGED, updated("roots://approved")]


def test_subscriptions_wait_for_the_end_of_the_handshake() -> None:
    audience = Audience()
    audience.subscribe("roots://approved")
    assert list(audience.announce(NEWS)) == []


def test_what_did_not_change_is_not_announced() -> None:
    audience = Audience()
    audience.asked_roots = audience.initialized = True
    news = Difference(
        frozenset({"roots://approved"}), lists_resources=True, lists_roots=False, revokes=False
    )
    assert list(audience.announce(news)) == [RESOURCES_CHANGED]
