from __future__ import annotations

from typing import get_args

from rootsd.core import inputs
from rootsd.core.model import ActorKind


def test_every_order_has_an_actor_and_no_event_has() -> None:
    fields = {kind: set(kind.__struct_fields__) for kind in get_args(inputs.Input)}
    assert all("actor" not in fields[kind] for kind in get_args(inputs.InputEvent))
    assert all("actor" in fields[kind] for kind in get_args(inputs.Order))


def test_a_confirmed_challenge_counts_as_a_persons_order() -> None:
    assert {kind for kind in ActorKind if kind.may_decide} == {
        ActorKind.PERSON,
        ActorKind.CHALLENGED,
    }
