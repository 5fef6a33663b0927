"""The hello of our bridges and run proxies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.record import to_json
from rootsd.wire.hello import (
    BadHello,
    Hello,
    HelloResult,
    ResumeState,
    ScopeRefused,
    decode_hello,
    decode_reported_roots,
    encode_hello,
    encode_reported_roots,
    resume_hello,
)
from rootsd.wire.jsonrpc import Params
from rootsd.wire.requested_scope import RequestedScope, parse_scope

TEXTS = st.lists(st.text()).map(tuple)
HELLOS = st.builds(
    Hello,
    st.integers(1, 9),
    st.text(max_size=128),
    st.builds(
        RequestedScope,
        TEXTS,
        TEXTS,
        st.none() | st.text(),
        st.booleans(),
        st.none() | st.text(),
        st.booleans(),
    ),
    st.none() | st.builds(ResumeState, st.none() | st.text(), st.integers(0)),
)


@given(HELLOS)
def test_a_hello_arrives_as_it_was_sent(hello: Hello) -> None:
    request = encode_hello(hello, "id")
    assert (request.id, request.method) == ("id", "rootsd/hello")
    assert decode_hello(request.params) == hello


def test_an_empty_hello_has_only_a_version() -> None:
    assert encode_hello(Hello(), 0).params == {"version": 1}


def test_a_client_name_is_cut_to_a_length() -> None:
    assert len(decode_hello({"version": 1, "client": "x" * 1000}).client) == 128


@pytest.mark.parametrize(
    "params",
    [
        None,
        [1],
        {},
        {"version": "1"},
        {"version": True},
        {"version": 0},
        {"version": 1, "later": 1},
        {"version": 1, "client": 1},
        {"version": 1, "names": ["api"]},
        {"version": 1, "scope": None},
        {"version": 1, "scope": ["names"]},
        {"version": 1, "scope": {"later": 1}},
        {"version": 1, "scope": {"client": "x"}},
        {"version": 1, "scope": {"cwd": []}},
        {"version": 1, "scope": {"names": "api"}},
        {"version": 1, "scope": {"names": [1]}},
        {"version": 1, "scope": {"tags": None}},
        {"version": 1, "scope": {"any_uri": 1}},
    ],
)
def test_a_hello_that_is_not_understood_in_full_is_refused(params: Params) -> None:
    with pytest.raises(BadHello):
        decode_hello(params)


def test_words_become_a_scope() -> None:
    words = ["api", "tag:work", "cwd", "a/tag:b", "tag:x:y", "tag:focus"]
    assert parse_scope(words, lambda: "/here", any_uri=True) == RequestedScope(
        ("api", "a/tag:b"), ("work", "x:y", "focus"), "/here", any_uri=True
    )
    following = parse_scope(["focus"], lambda: "/here", any_uri=False)
    assert following == RequestedScope(focus=True)
    assert following.narrows, "an older daemon must refuse it"
    assert parse_scope([], lambda: "/here", any_uri=False) == RequestedScope()


def test_a_tag_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="tag:"):
        parse_scope(["tag:"], lambda: "/", any_uri=False)


def test_reported_roots_are_bounded() -> None:
    names = tuple(str(n) * 200 for n in range(100))
    reported = decode_reported_roots(encode_reported_roots(names).params)
    assert reported is not None
    number, first = reported
    assert (number, len(first), len(first[0])) == (100, 20, 128)


@pytest.mark.parametrize(
    "params",
    [None, [], {}, {"roots": 1}, {"roots": True, "names": []}, {"roots": 0, "names": ["x"]},
     {"roots": 1, "names": [1]}, {"roots": "1", "names": []}],
)  # fmt: skip
def test_invalid_reported_roots_are_none(params: Params) -> None:
    assert decode_reported_roots(params) is None


@given(st.none() | st.text(), st.integers(0))
def test_a_session_resumes_with_its_start(anchor: str | None, approvals: int) -> None:
    begun = Hello(scope=RequestedScope(workspace="/src/api"))
    start = ResumeState(anchor, approvals)
    again = resume_hello(begun, to_json(HelloResult(start=start)))
    assert again == begun._replace(start=start)
    assert decode_hello(encode_hello(again, 0).params) == again
    assert resume_hello(again, {"version": 1}) == again, "an older daemon returns no start"


@pytest.mark.parametrize(
    "start", [7, {}, {"anchor": 1, "approvals": 0}, {"anchor": None, "approvals": True}]
)
def test_an_invalid_start_is_refused(start: object) -> None:
    with pytest.raises(ScopeRefused):
        resume_hello(Hello(scope=RequestedScope(workspace="/src")), {"start": start})
    with pytest.raises(BadHello):
        decode_hello({"version": 1, "scope": {"workspace": "/src"}, "start": start})
