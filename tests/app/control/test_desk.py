"""The register of control requests."""

from __future__ import annotations

import pytest

from rootsd.app.control.desk import Desk
from rootsd.app.control.register import Call
from rootsd.wire.control import FORMS
from rootsd.wire.request import Request
from rootsd.wire.running import StatusQuery
from support.decisions import PERSON
from support.desks import Office


@pytest.mark.parametrize("form", FORMS)
def test_every_request_that_can_be_read_has_an_entry(form: type[Request]) -> None:
    assert form in Office().desk.forms


def test_no_request_is_answered_that_cannot_be_read() -> None:
    assert Office().desk.forms == set(FORMS)


async def test_a_request_is_answered_by_its_own_entry() -> None:
    desk: Desk = Office().desk
    assert (await desk.answer(StatusQuery(), Call(PERSON)))["counts"]["projects"] == 0
