"""The base class of all control requests, and the readers for their fields.

A request is a frozen dataclass that knows its method. On the control socket, it is one JSON-RPC
call: `method`, and the fields of the dataclass as `params`. Each family of requests has its own
module, together with its answers. `rootsd.wire.registry` lists them all.

Paths travel as `str`, with lone surrogates for bytes that are not UTF-8 (PEP 383). JSON escapes
these without loss.

A field reader returns the value of one field. It raises ValueError for a value of another type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from rootsd.core.errors import ErrorCode, RootsdError


class BadRequest(RootsdError):
    """A control request that is not valid for its method."""

    code = ErrorCode.USAGE


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The base class of all requests. `method` is the name on the wire."""

    method: ClassVar[str]


def encode_request(request: ControlRequest) -> tuple[str, dict[str, Any]]:
    """Return the method and the params of a request. Fields with their default value
    are left out.
    """
    params: dict[str, Any] = {}
    for field in fields(request):
        value = getattr(request, field.name)
        if value != field.default:
            params[field.name] = list(value) if isinstance(value, tuple) else value
    return request.method, params


def read_str(raw: object) -> str:
    """Return a string."""
    if not isinstance(raw, str):
        raise ValueError("not a string")  # noqa: TRY004 - one class for all forms
    return raw


def read_int(raw: object) -> int:
    """Return an integer. A bool is not one."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - one class for all forms
    return raw


def read_bool(raw: object) -> bool:
    """Return True or False."""
    if not isinstance(raw, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004 - one class for all forms
    return raw


def read_strs(raw: object) -> tuple[str, ...]:
    """Return the strings of a list."""
    if not isinstance(raw, list):
        raise ValueError("not a list")  # noqa: TRY004 - one class for all forms
    return tuple(read_str(item) for item in raw)


def enum_reader(enum: type[StrEnum]) -> Callable[[object], StrEnum]:
    """Return a reader for members of `enum` by value."""
    return lambda raw: enum(read_str(raw))


def optional_reader(reader: Callable[[object], object]) -> Callable[[object], object]:
    """Return a reader that reads null as None, and other values with `reader`."""
    return lambda raw: None if raw is None else reader(raw)
