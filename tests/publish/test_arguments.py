"""What a tool was called with, checked."""

from __future__ import annotations

import pytest

from rootsd.publish import arguments as given
from rootsd.publish.arguments import BadArguments


def test_an_argument_that_the_tool_does_not_take_is_named_safely() -> None:
    given.expect({"path": 1}, "path", "name")
    with pytest.raises(BadArguments, match=r"unknown argument a\\u\{1b\}; this tool takes path"):
        given.expect({"a\x1b": 1}, "path")


def test_a_text_is_there_and_not_empty() -> None:
    assert given.text({"name": "api"}, "name") == "api"
    for bad in ({}, {"name": ""}, {"name": 7}, {"name": None}):
        with pytest.raises(BadArguments, match="give name"):
            given.text(bad, "name")


def test_a_path_is_absolute_and_without_nul() -> None:
    assert given.path({"path": "/a/ü"}) == "/a/ü".encode()
    for bad in ("a", "~/a", "/a\0b"):
        with pytest.raises(BadArguments, match="absolute path"):
            given.path({"path": bad})


def test_seconds_are_whole_and_within_bounds() -> None:
    assert given.seconds({}, "wait", 4.5, 120) == 4.5
    assert given.seconds({"wait": 0}, "wait", 4.5, 120) == 0
    assert given.seconds({"wait": 120}, "wait", 4.5, 120) == 120
    for bad in (-1, 121, 1.5, True, "3"):
        with pytest.raises(BadArguments, match="from 0 to 120"):
            given.seconds({"wait": bad}, "wait", 4.5, 120)
