"""All control requests: with any values for Hypothesis, and one of each type."""

from __future__ import annotations

from enum import Enum
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
    if declared is Any:
        return st.none() | st.booleans() | st.integers(-1, 1 << 40) | TEXT
    if get_origin(declared) is dict:
        key, value = get_args(declared)
        return st.dictionaries(_values_of(key), _values_of(value), max_size=4)
    if get_origin(declared) is tuple:  # of any length
        return st.lists(_values_of(get_args(declared)[0]), max_size=4).map(tuple)
    if get_args(declared):
        return st.one_of([_values_of(part) for part in get_args(declared)])
    values: st.SearchStrategy[Any] = st.from_type(declared)
    return values


def _requests_of(form: type[ControlRequest]) -> st.SearchStrategy[ControlRequest]:
    return st.builds(form, **{f.name: _values_of(f.type) for f in fields(form)})


REQUESTS: st.SearchStrategy[ControlRequest] = st.sampled_from(REQUEST_TYPES).flatmap(_requests_of)


def smallest_request(form: type[ControlRequest], **values: object) -> ControlRequest:
    """Return a request with `values` and valid values for the other required fields."""
    required = {f.name: _smallest_value(f.type) for f in fields(form) if f.required}
    return form(**required | values)


def _smallest_value(declared: Any) -> object:  # noqa: ANN401 - whatever type
    if get_origin(declared) is tuple:
        return (_smallest_value(get_args(declared)[0]),)
    if issubclass(declared, Enum):
        return next(iter(declared))
    return {str: "x", int: 1}[declared]


def is_order(form: type[ControlRequest]) -> bool:
    """Return whether requests of this type decide something, unless their effect is a dry run."""
    return "effect" in form.__struct_fields__
