"""All requests that the command line may send, and how one is read from the wire.

A new request is a dataclass in the module of its family and a line in `FORMS`; how it is answered
is said in `rootsd.app.control.desk`. The type of a field is its form on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from rootsd.wire.adding import Addition
from rootsd.wire.deciding import Decide
from rootsd.wire.examining import Examine
from rootsd.wire.facts import ShowQuery
from rootsd.wire.focusing import FocusQuery, SetFocus
from rootsd.wire.forms import number, optional, text, texts, truth, word
from rootsd.wire.guarding import TYPED, GuardQuery, LogQuery, SetGuard
from rootsd.wire.importing import Import
from rootsd.wire.naming import Renaming, Tagging
from rootsd.wire.news import NewsQuery
from rootsd.wire.projects import NextWaiting, ProjectsQuery
from rootsd.wire.request import BadRequest, Request
from rootsd.wire.rules import RuleAddition, RuleRemoval, RulesQuery
from rootsd.wire.running import Announcement, Reload, StatusQuery, Stop
from rootsd.wire.scans import ScanOrder
from rootsd.wire.sessions import SessionsQuery
from rootsd.wire.standing import CheckQuery, WhyQuery
from rootsd.wire.undoing import Undo

FORMS: tuple[type[Request], ...] = (
    StatusQuery,
    ProjectsQuery,
    NextWaiting,
    ShowQuery,
    SessionsQuery,
    RulesQuery,
    ScanOrder,
    Reload,
    Examine,
    NewsQuery,
    Decide,
    Addition,
    Undo,
    Import,
    Renaming,
    FocusQuery,
    SetFocus,
    Tagging,
    RuleAddition,
    RuleRemoval,
    CheckQuery,
    WhyQuery,
    GuardQuery,
    SetGuard,
    LogQuery,
    Announcement,
    Stop,
)
METHODS: Mapping[str, type[Request]] = {form.method: form for form in FORMS}

_Reader = Callable[[object], object]
_PLAIN: Mapping[Any, _Reader] = {str: text, int: number, bool: truth, tuple[str, ...]: texts}


def decode(method: str, params: Mapping[str, Any]) -> Request:
    """The request behind a method and its params. Unknown keys are ignored: see `unheeded`.

    Raises BadRequest where the method is unknown or a value has the wrong form.
    """
    form = METHODS.get(method)
    if form is None:
        raise BadRequest(f"this daemon does not know the request {method!r}", "rootsd version")
    readers = _readers_of(method)
    values = {
        name: _decoded(name, readers[name], raw) for name, raw in params.items() if name in readers
    }
    build: Callable[..., Request] = form
    try:
        return build(**values)
    except TypeError as error:
        raise BadRequest(f"the request {method} lacks a value: {error}") from error


def unheeded(method: str, params: Mapping[str, Any]) -> list[str]:
    """The keys of params that `decode` ignores. A caller leaves out what says nothing new, so a
    newer one means something by them: an order without it would do more, or otherwise."""
    return [name for name in params if name != TYPED and name not in _readers_of(method)]


def _decoded(name: str, reader: _Reader, raw: object) -> object:
    try:
        return reader(raw)
    except ValueError as error:
        raise BadRequest(f"the value of {name} is not of its form: {error}") from error


@cache
def _readers_of(method: str) -> Mapping[str, _Reader]:
    form = METHODS[method]
    types = get_type_hints(form)
    return {field.name: _reader_of(types[field.name]) for field in fields(form)}


def _reader_of(declared: Any) -> _Reader:  # noqa: ANN401 - a type is whatever was written
    if declared in _PLAIN:
        return _PLAIN[declared]
    if isinstance(declared, type) and issubclass(declared, StrEnum):
        return word(declared)
    [inner] = (part for part in get_args(declared) if part is not NoneType)
    return optional(_reader_of(inner))
