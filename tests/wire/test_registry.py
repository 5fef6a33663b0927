"""Every control request survives the wire, and an invalid one is refused with a message."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import fields

from rootsd.core.access import Access
from rootsd.wire.decisions import DecideRequest, DecisionVerb
from rootsd.wire.projects import CheckQuery, ProjectsQuery, Selection
from rootsd.wire.registry import (
    REQUEST_TYPE_BY_METHOD,
    REQUEST_TYPES,
    decode_request,
    find_request_types,
)
from rootsd.wire.request import BadRequest, ControlRequest, encode_request
from support.control_requests import REQUESTS, smallest_request

_VERBS = "expected one of approve, deny, forget, accept"


@given(REQUESTS)
def test_a_request_survives_json(request_: ControlRequest) -> None:
    method, params = encode_request(request_)
    assert decode_request(method, json.loads(json.dumps(params))) == request_


@given(REQUESTS)
def test_unknown_params_of_a_newer_caller_are_ignored(request_: ControlRequest) -> None:
    method, params = encode_request(request_)
    assert decode_request(method, {**params, "hi": {"protocol": 2}, "later": [1]}) == request_


@pytest.mark.parametrize("method", REQUEST_TYPE_BY_METHOD)
def test_default_values_are_left_out(method: str) -> None:
    form = REQUEST_TYPE_BY_METHOD[method]
    request = smallest_request(form)
    encoded = encode_request(request)
    assert encoded[1].keys() == {f.name for f in fields(form) if f.required}
    assert decode_request(*encoded) == request


def test_a_list_of_words_names_the_words() -> None:
    refusal = _refusal("projects", {"cwd": "/", "kinds": ["cvs"]})
    assert "params.kinds: expected a list with any of git, " in refusal


def _refusal(method: str, params: dict[str, Any]) -> str:
    with pytest.raises(BadRequest) as refusal:
        decode_request(method, params)
    return refusal.value.message


@pytest.mark.parametrize(
    ("method", "params", "wrong"),
    [
        ("check", {}, "path: missing; expected a string"),
        ("check", {"path": 1}, "path: expected a string"),
        ("check", {"path": None}, "path: expected a string"),
        ("projects", {"cwd": "/", "refs": "api"}, "refs: expected a list of strings"),
        ("projects", {"cwd": "/", "refs": None}, "refs: expected a list of strings"),
        ("projects", {"cwd": "/", "refs": ["api", 1]}, "refs: expected a list of strings"),
        (
            "projects",
            {"cwd": "/", "verdict": "maybe"},
            "verdict: expected one of pending, approved, denied or null",
        ),
        (
            "decide",
            {"cwd": "/", "verb": "deny", "tags": ["x", None]},
            "tags: expected a list of strings",
        ),
        ("projects", {"cwd": "/", "under": []}, "under: expected a string or null"),
        ("decide", {"cwd": "/", "verb": "fly"}, f"verb: {_VERBS}"),
        ("decide", {"cwd": "/", "verb": "\udcff"}, f"verb: {_VERBS}"),
        (
            "decide",
            {"cwd": "/", "verb": "deny", "effect": 1},
            "effect: expected one of apply, dry-run",
        ),
        ("log", {"last": True}, "last: expected an integer"),
        ("log", {"last": "1"}, "last: expected an integer"),
        ("log", {"last": 1.0}, "last: expected an integer"),
        ("log", {"after": 1.5}, "after: expected an integer or null"),
        ("status", {"is_look": 1}, "is_look: expected true or false"),
        ("status", {"is_look": "true"}, "is_look: expected true or false"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_and_what_was_expected(
    method: str, params: dict[str, Any], wrong: str
) -> None:
    assert _refusal(method, params) == f"the request {method} is not valid: params.{wrong}"


def test_all_wrong_values_of_a_request_are_named_at_once() -> None:
    assert _refusal("rule-add", {"verdict": "denied", "pattern": 1, "effect": None}) == (
        "the request rule-add is not valid: params.pattern: expected a string; "
        "params.cwd: missing; expected a string; params.effect: expected one of apply, dry-run"
    )


def test_an_unknown_request_is_named() -> None:
    assert "'fly'" in _refusal("fly", {})


def test_an_unknown_key_may_be_any_text() -> None:
    assert decode_request("check", {"path": "/x", "\udcff": 1}) == CheckQuery("/x")


def test_each_method_has_one_request() -> None:
    assert len(REQUEST_TYPES) == len(REQUEST_TYPE_BY_METHOD) > 20


_NEW_FAMILY = """
from rootsd.wire.request import ControlRequest, EmptyResult

class ExampleRequest(ControlRequest):
    method = "example"
    result = EmptyResult
"""


def test_a_new_module_of_requests_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "example_wire"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "family.py").write_text(_NEW_FAMILY)
    (package / "no_requests.py").write_text("from rootsd.wire.projects import CheckQuery\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_request_types(import_module("example_wire"))
    assert [request.method for request in found] == ["example"]


def test_a_verdict_may_be_null() -> None:
    assert decode_request("projects", {"cwd": "/", "verdict": None}) == ProjectsQuery("/")


def test_a_path_that_is_not_utf8_is_ascii_on_the_wire() -> None:
    query = CheckQuery(b"/src/\xff\n".decode("utf-8", "surrogateescape"))
    line = json.dumps(encode_request(query)[1])
    assert line.isascii()
    assert "\n" not in line
    assert decode_request("check", json.loads(line)) == query


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
