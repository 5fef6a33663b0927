"""The registry of all control requests, and how one is decoded from its method and params.

A new request is a dataclass in the module of its family and a line in `FORMS`; how it is answered
is said in `rootsd.control.dispatch`. The type of a field is its form on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from rootsd.wire.daemon import (
    AnnounceRequest,
    DoctorRequest,
    NewProposalsQuery,
    ReloadRequest,
    ScanRequest,
    SessionsQuery,
    StatusQuery,
    StopRequest,
)
from rootsd.wire.decisions import (
    AddRequest,
    AddRuleRequest,
    DecideRequest,
    FocusQuery,
    ImportRequest,
    RemoveRuleRequest,
    RenameRequest,
    RulesQuery,
    SetFocusRequest,
    TagRequest,
)
from rootsd.wire.guard import CHALLENGE_ANSWER, GuardQuery, LogQuery, SetGuardRequest, UndoRequest
from rootsd.wire.projects import CheckQuery, NextPendingQuery, ProjectsQuery, ShowQuery, WhyQuery
from rootsd.wire.request import (
    BadRequest,
    ControlRequest,
    enum_reader,
    optional_reader,
    read_bool,
    read_int,
    read_str,
    read_strs,
)

REQUEST_TYPES: tuple[type[ControlRequest], ...] = (
    StatusQuery,
    ProjectsQuery,
    NextPendingQuery,
    ShowQuery,
    SessionsQuery,
    RulesQuery,
    ScanRequest,
    ReloadRequest,
    DoctorRequest,
    NewProposalsQuery,
    DecideRequest,
    AddRequest,
    UndoRequest,
    ImportRequest,
    RenameRequest,
    FocusQuery,
    SetFocusRequest,
    TagRequest,
    AddRuleRequest,
    RemoveRuleRequest,
    CheckQuery,
    WhyQuery,
    GuardQuery,
    SetGuardRequest,
    LogQuery,
    AnnounceRequest,
    StopRequest,
)
REQUEST_TYPE_BY_METHOD: Mapping[str, type[ControlRequest]] = {
    form.method: form for form in REQUEST_TYPES
}

_FieldReader = Callable[[object], object]
_PLAIN: Mapping[Any, _FieldReader] = {
    str: read_str,
    int: read_int,
    bool: read_bool,
    tuple[str, ...]: read_strs,
}


def decode_request(method: str, params: Mapping[str, Any]) -> ControlRequest:
    """The request behind a method and its params. Unknown keys are ignored: see `unheeded`.

    Raises BadRequest where the method is unknown or a value has the wrong form.
    """
    form = REQUEST_TYPE_BY_METHOD.get(method)
    if form is None:
        raise BadRequest(f"this daemon does not know the request {method!r}", "rootsd version")
    readers = _readers_of(method)
    values = {
        name: _decoded(name, readers[name], raw) for name, raw in params.items() if name in readers
    }
    build: Callable[..., ControlRequest] = form
    try:
        return build(**values)
    except TypeError as error:
        raise BadRequest(f"the request {method} lacks a value: {error}") from error


def unknown_params(method: str, params: Mapping[str, Any]) -> list[str]:
    """The keys of params that `decode` ignores. A caller leaves out what says nothing new, so a
    newer one means something by them: an order without it would do more, or otherwise."""
    return [
        name for name in params if name != CHALLENGE_ANSWER and name not in _readers_of(method)
    ]


def _decoded(name: str, reader: _FieldReader, raw: object) -> object:
    try:
        return reader(raw)
    except ValueError as error:
        raise BadRequest(f"the value of {name} is not of its form: {error}") from error


@cache
def _readers_of(method: str) -> Mapping[str, _FieldReader]:
    form = REQUEST_TYPE_BY_METHOD[method]
    types = get_type_hints(form)
    return {field.name: _reader_of(types[field.name]) for field in fields(form)}


def _reader_of(declared: Any) -> _FieldReader:  # noqa: ANN401 - a type is whatever was written
    if declared in _PLAIN:
        return _PLAIN[declared]
    if isinstance(declared, type) and issubclass(declared, StrEnum):
        return enum_reader(declared)
    [inner] = (part for part in get_args(declared) if part is not NoneType)
    return optional_reader(_reader_of(inner))
