"""Answers about projects."""

from __future__ import annotations

from rootsd.wire.projects import ShowQuery
from rootsd.wire.registry import decode_request
from rootsd.wire.request import encode_request


def test_the_request_is_decoded_as_it_was_sent() -> None:
    query = ShowQuery("/src", ("api", "."))
    assert encode_request(query) == ("show", {"cwd": "/src", "refs": ["api", "."]})
    assert decode_request(*encode_request(query)) == query
