"""Requests on the wire."""

from __future__ import annotations

import json

from rootsd.core.access import Access
from rootsd.wire.daemon import StatusQuery
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import Selection
from rootsd.wire.request import encode_request


def test_a_request_has_its_method_and_changed_fields() -> None:
    assert encode_request(StatusQuery()) == ("status", {})
    assert encode_request(StatusQuery(is_look=True)) == ("status", {"is_look": True})


def test_enums_are_sent_as_values() -> None:
    order = DecideRequest(
        DecisionVerb.APPROVE, cwd="/", select=Selection.LAPSED, access=Access.READ
    )
    assert json.loads(json.dumps(encode_request(order)[1])) == {
        "verb": "approve",
        "cwd": "/",
        "select": "lapsed",
        "access": "read",
    }
