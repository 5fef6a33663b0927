"""Every control request survives the wire, and an invalid one is refused with a message."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.wire.projects import CheckQuery, ProjectsQuery
from rootsd.wire.registry import REQUEST_TYPE_BY_METHOD, REQUEST_TYPES, decode_request
from rootsd.wire.request import BadRequest, ControlRequest, encode_request

# As from os.fsdecode: bytes that are not UTF-8 are lone surrogates.
TEXT = st.binary(max_size=20).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
TEXTS = st.lists(TEXT, max_size=4).map(tuple)


def _values_of(declared: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - whatever type
    if declared is str:
        return TEXT
    if declared == tuple[str, ...]:
        return TEXTS
    if get_args(declared):
        return st.one_of([_values_of(part) for part in get_args(declared)])
    values: st.SearchStrategy[Any] = st.from_type(declared)
    return values


def _requests_of(form: type[ControlRequest]) -> st.SearchStrategy[ControlRequest]:
    types = get_type_hints(form)
    return st.builds(form, **{f.name: _values_of(types[f.name]) for f in fields(form)})


REQUESTS: st.SearchStrategy[ControlRequest] = st.sampled_from(REQUEST_TYPES).flatmap(_requests_of)


@given(REQUESTS)
def test_a_request_survives_json(request_: ControlRequest) -> None:
    method, params = encode_request(request_)
    assert decode_request(method, json.loads(json.dumps(params))) == request_


@given(REQUESTS)
def test_unknown_params_of_a_newer_caller_are_ignored(request_: ControlRequest) -> None:
    method, params = encode_request(request_)
    assert decode_request(method, {**params, "hello": {"protocol": 2}, "later": [1]}) == request_


@pytest.mark.parametrize("method", REQUEST_TYPE_BY_METHOD)
def test_default_values_are_left_out(method: str) -> None:
    required: dict[str, object] = {
        f.name: "x" for f in fields(REQUEST_TYPE_BY_METHOD[method]) if f.default is MISSING
    }
    forms = {
        "verb": "deny", "verdict": "denied", "number": 3, "refs": ["x"], "guard": "off",
        "whats": ["x"], "names": ["x"], "tags": ["x"],
    }  # fmt: skip
    required |= {name: value for name, value in forms.items() if name in required}
    assert encode_request(decode_request(method, required)) == (method, required)


@pytest.mark.parametrize(
    ("method", "params", "named"),
    [
        ("fly", {}, "fly"),
        ("check", {}, "path"),
        ("check", {"path": 1}, "path"),
        ("check", {"path": None}, "path"),
        ("projects", {"cwd": "/", "refs": "api"}, "refs"),
        ("projects", {"cwd": "/", "refs": ["api", 1]}, "refs"),
        ("projects", {"cwd": "/", "verdict": "maybe"}, "verdict"),
        ("decide", {"cwd": "/", "verb": "fly"}, "verb"),
        ("decide", {"cwd": "/", "verb": "deny", "effect": 1}, "effect"),
    ],
)
def test_a_request_with_a_wrong_type_is_refused_with_the_field(
    method: str, params: dict[str, Any], named: str
) -> None:
    with pytest.raises(BadRequest, match=named):
        decode_request(method, params)


def test_a_verdict_may_be_null() -> None:
    assert decode_request("projects", {"cwd": "/", "verdict": None}) == ProjectsQuery("/")


def test_a_path_that_is_not_utf8_stays_ascii_on_the_wire() -> None:
    query = CheckQuery(b"/src/\xff\n".decode("utf-8", "surrogateescape"))
    line = json.dumps(encode_request(query)[1])
    assert line.isascii()
    assert "\n" not in line
    assert decode_request("check", json.loads(line)) == query
