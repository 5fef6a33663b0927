"""What a request looks like on the wire."""

from __future__ import annotations

import json

from rootsd.core.model import Access
from rootsd.wire.deciding import Decide, DecisionVerb
from rootsd.wire.projects import Selection
from rootsd.wire.request import encode
from rootsd.wire.running import StatusQuery


def test_a_request_names_its_method_and_what_differs_from_the_usual() -> None:
    assert encode(StatusQuery()) == ("status", {})
    assert encode(StatusQuery(is_look=True)) == ("status", {"is_look": True})


def test_enums_travel_as_words() -> None:
    order = Decide(DecisionVerb.APPROVE, cwd="/", select=Selection.LAPSED, access=Access.READ)
    assert json.loads(json.dumps(encode(order)[1])) == {
        "verb": "approve",
        "cwd": "/",
        "select": "lapsed",
        "access": "read",
    }
