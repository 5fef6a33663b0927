"""Routes: which requests are orders, and their texts."""

from __future__ import annotations

from rootsd.control.routes import RequestContext, command_route, plain_command, query_route
from rootsd.core.model import Actor
from rootsd.wire.guard import GuardQuery
from support.sample_decisions import PERSON


async def test_a_query_is_not_an_order_and_needs_no_caller() -> None:
    async def answer(_: GuardQuery) -> dict[str, str]:
        return {"guard": "off"}

    entry = query_route(GuardQuery, answer)
    assert entry.guarded_command(GuardQuery()) is None
    assert await entry.answer(GuardQuery(), RequestContext(PERSON)) == {"guard": "off"}


async def test_an_order_gets_its_actor() -> None:
    async def answer(_: GuardQuery, actor: Actor) -> dict[str, str]:
        return {"by": actor.detail}

    entry = command_route(GuardQuery, answer, lambda _: plain_command("guard"))
    assert entry.guarded_command(GuardQuery()) is not None
    assert await entry.answer(GuardQuery(), RequestContext(PERSON)) == {"by": PERSON.detail}


async def test_the_text_of_an_order_is_escaped_and_names_its_stakes() -> None:
    told = plain_command("rename x\x1b[2J y")
    assert told.text == "rename x\\u{1b}[2J y"
    assert await told.preview() == ("rootsd rename x\\u{1b}[2J y",)
    assert len(plain_command("x" * 1000).text) <= 201
