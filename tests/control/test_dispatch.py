"""The table of control requests and their routes."""

from __future__ import annotations

import pytest

from rootsd.control.dispatch import Dispatcher
from rootsd.control.routes import RequestContext
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.request import ControlRequest
from support.control_harness import ControlHarness
from support.sample_decisions import PERSON


@pytest.mark.parametrize("form", REQUEST_TYPES)
def test_every_request_type_has_a_route(form: type[ControlRequest]) -> None:
    assert form in ControlHarness().dispatcher.request_types


def test_every_route_has_a_request_type() -> None:
    assert ControlHarness().dispatcher.request_types == set(REQUEST_TYPES)


async def test_a_request_is_answered_by_its_own_route() -> None:
    dispatcher: Dispatcher = ControlHarness().dispatcher
    assert (await dispatcher.answer(StatusQuery(), RequestContext(PERSON)))["counts"][
        "projects"
    ] == 0
