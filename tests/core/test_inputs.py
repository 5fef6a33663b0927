from __future__ import annotations

from typing import get_args

from rootsd.core import inputs
from rootsd.core.model import Access, ActorKind
from support.world import ANN, identity


def test_every_order_has_an_actor_and_no_event_has() -> None:
    fields = {kind: set(kind.__dataclass_fields__) for kind in get_args(inputs.Input)}
    assert all("actor" not in fields[kind] for kind in get_args(inputs.InputEvent))
    assert all("actor" in fields[kind] for kind in get_args(inputs.Order))


def test_the_daemon_itself_is_no_actor() -> None:
    words = {"person", "challenge confirmed", "rule", "main checkout", "caller"}
    assert {kind.value for kind in ActorKind} == words


def test_a_person_may_decide_also_where_it_was_confirmed() -> None:
    assert {kind for kind in ActorKind if kind.may_decide} == {
        ActorKind.PERSON,
        ActorKind.CHALLENGED,
    }


def test_an_approval_lets_write_unless_it_says_otherwise() -> None:
    assert inputs.Approve(b"/w", identity(1), ANN).access is Access.READ_WRITE
