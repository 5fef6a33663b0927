"""The base class of all control requests.

A request is a frozen dataclass that knows its method and the type of its result. On the control
socket, it is one JSON-RPC call: `method`, and the fields of the dataclass as `params`. The types
of the fields define their JSON types. Each family of requests has its own module, together with
its results, and `rootsd.wire.registry` collects them all.

Paths travel as `str`, with lone surrogates for bytes that are not UTF-8 (PEP 383). JSON escapes
these without loss.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypedDict

from rootsd.core.errors import ErrorCode, RootsdError


class BadRequest(RootsdError):
    """A control request that is not valid for its method."""

    code = ErrorCode.USAGE


class EmptyResult(TypedDict):
    """An empty object: the daemon has nothing to say."""


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The base class of all requests.

    `method` is the name on the wire, and `result` the `TypedDict` of a successful answer.
    """

    method: ClassVar[str]
    result: ClassVar[type]


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
