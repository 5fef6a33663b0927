"""The request for facts."""

from __future__ import annotations

from rootsd.wire.control import decode
from rootsd.wire.facts import ShowQuery
from rootsd.wire.request import encode


def test_the_request_travels() -> None:
    query = ShowQuery("/src", ("api", "."))
    assert encode(query) == ("show", {"cwd": "/src", "refs": ["api", "."]})
    assert decode(*encode(query)) == query
