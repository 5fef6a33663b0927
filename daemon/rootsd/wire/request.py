"""The base class of all control requests, and how their fields are written and read.

What every request of the control socket is: a frozen dataclass that knows its method.

Each family of requests has a module of its own, with the answers; `rootsd.wire.registry` lists
them all. A request is one JSON-RPC call: `method`, and as `params` the fields of the dataclass.
Paths travel as `str` with undecodable bytes as lone surrogates (PEP 383), which JSON escapes
losslessly.

The forms of single values in control requests. Each raises ValueError for what has another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from rootsd.core.errors import ErrorCode, RootsdError


class BadRequest(RootsdError):
    """A control message that does not have the form of its method."""

    code = ErrorCode.USAGE


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The base of all requests; `method` is the name on the wire."""

    method: ClassVar[str]


def encode_request(request: ControlRequest) -> tuple[str, dict[str, Any]]:
    """The method and the params of a request; enums as words, absent values left out."""
    params: dict[str, Any] = {}
    for field in fields(request):
        value = getattr(request, field.name)
        if value != field.default:
            params[field.name] = list(value) if isinstance(value, tuple) else value
    return request.method, params


def read_str(raw: object) -> str:
    """A string."""
    if not isinstance(raw, str):
        raise ValueError("not a string")  # noqa: TRY004 - one class for all forms
    return raw


def read_int(raw: object) -> int:
    """A whole number, which a bool is not."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - one class for all forms
    return raw


def read_bool(raw: object) -> bool:
    """True or false."""
    if not isinstance(raw, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004 - one class for all forms
    return raw


def read_strs(raw: object) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(raw, list):
        raise ValueError("not a list")  # noqa: TRY004 - one class for all forms
    return tuple(read_str(item) for item in raw)


def enum_reader(enum: type[StrEnum]) -> Callable[[object], StrEnum]:
    """What reads a member of `enum` by its value."""
    return lambda raw: enum(read_str(raw))


def optional_reader(form: Callable[[object], object]) -> Callable[[object], object]:
    """What reads null as None, and all else as `form` does."""
    return lambda raw: None if raw is None else form(raw)
