"""The base class of all control requests.

A request is a frozen dataclass with its method and the type of its result. On the control socket,
it is a JSON-RPC call with the `method`, and with the fields of the dataclass as `params`. The
types of the fields define the JSON types. Each family of requests has its own module, together
with its results, and `rootsd.wire.registry` finds these modules.

Paths are sent as text, with lone surrogates for bytes that are not UTF-8 (PEP 383). JSON escapes
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
    """An empty object, for requests without a result."""


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The base class of all requests.

    `method` is the name on the wire, and `result` is the `TypedDict` of a successful answer.
    """

    method: ClassVar[str]
    result: ClassVar[type]


def encode_request(request: ControlRequest) -> tuple[str, dict[str, Any]]:
    """Return the method and the params of a request, without fields with default values."""
    params: dict[str, Any] = {}
    for field in fields(request):
        value = getattr(request, field.name)
        if value != field.default:
            params[field.name] = list(value) if isinstance(value, tuple) else value
    return request.method, params
