"""The table of control requests and their routes."""

from __future__ import annotations

from rootsd.control.dispatch import Dispatcher, all_routes
from rootsd.control.routes import RequestContext
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.registry import REQUEST_TYPES
from support.control_harness import ControlHarness
from support.sample_decisions import PERSON


def test_every_request_type_has_one_route() -> None:
    routed = [route.request_type for route in all_routes(ControlHarness().services)]
    assert len(routed) == len(REQUEST_TYPES)
    assert set(routed) == set(REQUEST_TYPES)


async def test_a_request_is_answered_by_its_own_route() -> None:
    dispatcher: Dispatcher = ControlHarness().dispatcher
    assert (await dispatcher.answer(StatusQuery(), RequestContext(PERSON)))["counts"][
        "projects"
    ] == 0
