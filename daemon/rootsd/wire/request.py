"""What every request of the control socket is: a frozen dataclass that knows its method.

Each family of requests has a module of its own, with the answers; `rootsd.wire.control` lists
them all. A request is one JSON-RPC call: `method`, and as `params` the fields of the dataclass.
Paths travel as `str` with undecodable bytes as lone surrogates (PEP 383), which JSON escapes
losslessly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from rootsd.core.errors import ErrorCode, RootsdError


class BadRequest(RootsdError):
    """A control message that does not have the form of its method."""

    code = ErrorCode.USAGE


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests; `method` is the name on the wire."""

    method: ClassVar[str]


def encode(request: Request) -> tuple[str, dict[str, Any]]:
    """The method and the params of a request; enums as words, absent values left out."""
    params: dict[str, Any] = {}
    for field in fields(request):
        value = getattr(request, field.name)
        if value != field.default:
            params[field.name] = list(value) if isinstance(value, tuple) else value
    return request.method, params
