"""Strategies for all control requests with any values, for Hypothesis."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from hypothesis import strategies as st
from msgspec.structs import fields

from rootsd.wire.registry import REQUEST_TYPES
from rootsd.wire.request import ControlRequest

# As from os.fsdecode: bytes that are not UTF-8 are lone surrogates.
TEXT = st.binary(max_size=20).map(lambda raw: raw.decode("utf-8", "surrogateescape"))


def _values_of(declared: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - whatever type
    if declared is str:
        return TEXT
    if get_origin(declared) is tuple:  # of any length
        return st.lists(_values_of(get_args(declared)[0]), max_size=4).map(tuple)
    if get_args(declared):
        return st.one_of([_values_of(part) for part in get_args(declared)])
    values: st.SearchStrategy[Any] = st.from_type(declared)
    return values


def _requests_of(form: type[ControlRequest]) -> st.SearchStrategy[ControlRequest]:
    return st.builds(form, **{f.name: _values_of(f.type) for f in fields(form)})


REQUESTS: st.SearchStrategy[ControlRequest] = st.sampled_from(REQUEST_TYPES).flatmap(_requests_of)
