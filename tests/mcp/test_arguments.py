"""The parsing of tool arguments, with the mistakes that models make."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rootsd.mcp.arguments import BadArguments, ToolArguments

EXAMPLE = {"path": "/home/you/src/api"}


def given(**arguments: object) -> ToolArguments:
    return ToolArguments(arguments, EXAMPLE)


@pytest.mark.parametrize("left_out", [{}, {"path": None}, {"path": ""}])
def test_null_and_empty_text_count_as_missing(left_out: dict[str, Any]) -> None:
    arguments = given(**left_out)
    assert arguments.path() is None
    assert arguments.text("path") is None
    assert arguments.number("path") is None


def test_a_call_without_arguments_has_none_of_them() -> None:
    assert ToolArguments(None, EXAMPLE).name() is None


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5.0), (5.0, 5.0), ("5", 5.0), (" 5.0 ", 5.0), (-1, -1.0), (1e999, math.inf)],
)
def test_a_number_is_accepted_in_each_spelling(value: object, number: float) -> None:
    assert given(limit=value).number("limit") == number


@pytest.mark.parametrize("value", [True, "many", [], {}, "nan", 10**400])
def test_a_value_that_is_not_a_number_is_an_error_with_an_example(value: object) -> None:
    with pytest.raises(BadArguments, match=r"limit is not a number\. .*/home/you/src/api"):
        given(limit=value).number("limit")


@pytest.mark.parametrize("name", ["uri", "folder", "directory", "file_path"])
def test_a_path_is_accepted_under_the_names_that_models_invent(name: str) -> None:
    assert given(**{name: "/src", "other": 7}).path() == "/src"
    assert given(**{name: "/src", "path": "/here"}).path() == "/here"
    assert given(**{name: ["/src"], "path": None}).path() is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/src/api", b"/src/api"),
        ("/src/100%25", b"/src/100%25"),
        ("file:///src/api", b"/src/api"),
        ("FILE:///src/a%20b", b"/src/a b"),
        ("file://localhost/src/Jos%C3%A9", "/src/José".encode()),
        ("file:///src/José", "/src/José".encode()),
        ("file:///src/c#/what?", b"/src/c#/what?"),
        ("file:///src/%ff", b"/src/\xff"),
        ("/src/\udcff", b"/src/\xff"),
    ],
)
def test_a_path_and_a_file_uri_are_accepted(text: str, path: bytes) -> None:
    assert given().absolute(text) == path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("src/api", "not an absolute path"),
        ("~/src", "not an absolute path"),
        ("file:src", "not an absolute path"),
        ("file://", "not an absolute path"),
        ("/src\0", "not an absolute path"),
        ("file:///src%00", "not an absolute path"),
        ("file://elsewhere/src", "another machine"),
        ("https://a.example/", "not an absolute path"),
    ],
)
def test_other_paths_are_errors_with_a_reason_and_an_example(text: str, reason: str) -> None:
    with pytest.raises(BadArguments, match=rf'{reason}\. .*{{"path": "/home/you/src/api"}}'):
        given().absolute(text)


def test_a_hostile_path_is_escaped_in_the_error() -> None:
    with pytest.raises(BadArguments) as caught:
        given().absolute("x\x1b[2J\u202e")
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_a_value_of_another_type_is_an_error_with_an_example() -> None:
    with pytest.raises(BadArguments, match="name is not a string"):
        given(name=7).name()
