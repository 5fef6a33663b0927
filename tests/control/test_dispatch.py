"""The register of control requests."""

from __future__ import annotations

import pytest

from rootsd.control.dispatch import Dispatcher
from rootsd.control.routes import RequestContext
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.request import ControlRequest
from support.control_harness import ControlHarness
from support.decisions import PERSON


@pytest.mark.parametrize("form", REQUEST_TYPES)
def test_every_request_that_can_be_read_has_an_entry(form: type[ControlRequest]) -> None:
    assert form in ControlHarness().dispatcher.request_types


def test_no_request_is_answered_that_cannot_be_read() -> None:
    assert ControlHarness().dispatcher.request_types == set(REQUEST_TYPES)


async def test_a_request_is_answered_by_its_own_entry() -> None:
    dispatcher: Dispatcher = ControlHarness().dispatcher
    assert (await dispatcher.answer(StatusQuery(), RequestContext(PERSON)))["counts"][
        "projects"
    ] == 0
