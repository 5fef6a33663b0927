"""Entries of the register: what is an order, and in which words."""

from __future__ import annotations

from rootsd.app.control.register import Call, look, order, plain
from rootsd.core.model import Actor
from rootsd.wire.guarding import GuardQuery
from support.decisions import PERSON


async def test_a_look_is_no_order_and_needs_no_caller() -> None:
    async def answer(_: GuardQuery) -> dict[str, str]:
        return {"guard": "off"}

    entry = look(GuardQuery, answer)
    assert entry.order_in(GuardQuery()) is None
    assert await entry.answer(GuardQuery(), Call(PERSON)) == {"guard": "off"}


async def test_an_order_is_carried_out_in_the_name_of_its_giver() -> None:
    async def answer(_: GuardQuery, actor: Actor) -> dict[str, str]:
        return {"by": actor.detail}

    entry = order(GuardQuery, answer, lambda _: plain("guard"))
    assert entry.order_in(GuardQuery()) is not None
    assert await entry.answer(GuardQuery(), Call(PERSON)) == {"by": PERSON.detail}


async def test_words_are_safe_to_show_and_say_what_is_at_stake() -> None:
    told = plain("rename x\x1b[2J y")
    assert told.words == "rename x\\u{1b}[2J y"
    assert await told.stakes() == ("rootsd rename x\\u{1b}[2J y",)
    assert len(plain("x" * 1000).words) <= 201
