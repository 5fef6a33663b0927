"""Entries of the register: what is an order, and in which words."""

from __future__ import annotations

from rootsd.control.routes import RequestContext, command_route, plain_command, query_route
from rootsd.core.model import Actor
from rootsd.wire.guard import GuardQuery
from support.decisions import PERSON


async def test_a_look_is_no_order_and_needs_no_caller() -> None:
    async def answer(_: GuardQuery) -> dict[str, str]:
        return {"guard": "off"}

    entry = query_route(GuardQuery, answer)
    assert entry.guarded_command(GuardQuery()) is None
    assert await entry.answer(GuardQuery(), RequestContext(PERSON)) == {"guard": "off"}


async def test_an_order_is_carried_out_in_the_name_of_its_giver() -> None:
    async def answer(_: GuardQuery, actor: Actor) -> dict[str, str]:
        return {"by": actor.detail}

    entry = command_route(GuardQuery, answer, lambda _: plain_command("guard"))
    assert entry.guarded_command(GuardQuery()) is not None
    assert await entry.answer(GuardQuery(), RequestContext(PERSON)) == {"by": PERSON.detail}


async def test_words_are_safe_to_show_and_say_what_is_at_stake() -> None:
    told = plain_command("rename x\x1b[2J y")
    assert told.text == "rename x\\u{1b}[2J y"
    assert await told.preview() == ("rootsd rename x\\u{1b}[2J y",)
    assert len(plain_command("x" * 1000).text) <= 201
