"""The registry of all control requests, and the decoder from method and params to a request.

To add a request, write a dataclass in the module of its family and add it to `REQUEST_TYPES`. Its
handler is in `rootsd.control.handlers`. The type of a field defines its JSON type.
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
    request_type.method: request_type for request_type in REQUEST_TYPES
}

_FieldReader = Callable[[object], object]
_PLAIN: Mapping[Any, _FieldReader] = {
    str: read_str,
    int: read_int,
    bool: read_bool,
    tuple[str, ...]: read_strs,
}


def decode_request(method: str, params: Mapping[str, Any]) -> ControlRequest:
    """Return the request for a method and its params. Unknown keys are ignored; see
    `unknown_params`.

    Raises BadRequest if the method is unknown or a value has the wrong type.
    """
    request_type = REQUEST_TYPE_BY_METHOD.get(method)
    if request_type is None:
        raise BadRequest(f"this daemon does not know the request {method!r}", "rootsd version")
    readers = _readers_of(method)
    values = {
        name: _decoded(name, readers[name], raw) for name, raw in params.items() if name in readers
    }
    build: Callable[..., ControlRequest] = request_type
    try:
        return build(**values)
    except TypeError as error:
        raise BadRequest(f"the request {method} lacks a value: {error}") from error


def unknown_params(method: str, params: Mapping[str, Any]) -> list[str]:
    """Return the keys of `params` that `decode_request` ignores.

    A caller leaves out default values. So an unknown key means something to a newer caller, and an
    order without it would do more than was asked, or something else.
    """
    return [
        name for name in params if name != CHALLENGE_ANSWER and name not in _readers_of(method)
    ]


def _decoded(name: str, reader: _FieldReader, raw: object) -> object:
    try:
        return reader(raw)
    except ValueError as error:
        raise BadRequest(f"the value of {name} has the wrong type: {error}") from error


@cache
def _readers_of(method: str) -> Mapping[str, _FieldReader]:
    request_type = REQUEST_TYPE_BY_METHOD[method]
    types = get_type_hints(request_type)
    return {field.name: _reader_of(types[field.name]) for field in fields(request_type)}


def _reader_of(declared: Any) -> _FieldReader:  # noqa: ANN401 - a type is whatever was written
    if declared in _PLAIN:
        return _PLAIN[declared]
    if isinstance(declared, type) and issubclass(declared, StrEnum):
        return enum_reader(declared)
    [inner] = (part for part in get_args(declared) if part is not NoneType)
    return optional_reader(_reader_of(inner))
