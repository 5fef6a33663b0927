"""The base class of all control requests.

A request is a frozen struct with its method and the type of its result. On the control socket,
it is a JSON-RPC call with the `method`, and with the fields of the struct as `params`. The
types of the fields define the JSON types. Each family of requests has its own module, together
with its results, and `rootsd.wire.registry` finds these modules.

Paths are sent as text, with lone surrogates for bytes that are not UTF-8 (PEP 383). JSON escapes
these without loss.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, TypedDict

from msgspec import Struct
from msgspec.structs import asdict

from rootsd.core.errors import ErrorCode, RootsdError

WORKING_METHOD = "working"
"""The notification, with an `EmptyResult`, that the daemon still works on a long request."""

WORKING_INTERVAL_S = 15.0
"""The daemon sends a line at least this often, in seconds, until it answers a long request."""


class BadRequest(RootsdError):
    """A control request that is not valid for its method."""

    code = ErrorCode.USAGE


class ApplyMode(StrEnum):
    """Whether to carry out an order or only to show its effect."""

    APPLY = "apply"
    DRY_RUN = "dry-run"


class Answer(TypedDict):
    """The keys that most results have."""

    revision: int
    """A number that grows with each change of the published set."""
    warnings: list[str]
    """What a person should know, one sentence each."""


class EmptyResult(TypedDict):
    """An empty object, for requests without a result, and for `working`."""


class ControlRequest(Struct, frozen=True):
    """The base class of all requests.

    `method` is the name on the wire, and `result` is the type of a successful answer. If the
    request `is_long`, it reads as many folders as it means, and the answer may take any time.
    Until then, the daemon sends `working` notifications, or `progress` in a scan.
    """

    method: ClassVar[str]
    result: ClassVar[type]
    is_long: ClassVar[bool] = False


def encode_request(request: ControlRequest) -> tuple[str, dict[str, Any]]:
    """Return the method and the params of a request, without fields with default values."""
    # A field without a default comes before all fields with one.
    names, values = request.__struct_fields__, request.__struct_defaults__
    defaults = dict(zip(reversed(names), reversed(values), strict=False))
    params: dict[str, Any] = {}
    for name, value in asdict(request).items():
        if name not in defaults or value != defaults[name]:
            params[name] = list(value) if isinstance(value, tuple) else value
    return request.method, params
