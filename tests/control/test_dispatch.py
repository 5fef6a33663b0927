"""The register of control requests."""

from __future__ import annotations

import pytest

from rootsd.control.dispatch import Dispatcher
from rootsd.control.routes import RequestContext
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.request import ControlRequest
from support.decisions import PERSON
from support.desks import Office


@pytest.mark.parametrize("form", REQUEST_TYPES)
def test_every_request_that_can_be_read_has_an_entry(form: type[ControlRequest]) -> None:
    assert form in Office().desk.forms


def test_no_request_is_answered_that_cannot_be_read() -> None:
    assert Office().desk.forms == set(REQUEST_TYPES)


async def test_a_request_is_answered_by_its_own_entry() -> None:
    desk: Dispatcher = Office().desk
    assert (await desk.answer(StatusQuery(), RequestContext(PERSON)))["counts"]["projects"] == 0
