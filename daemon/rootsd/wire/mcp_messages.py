"""MCP method names, and the messages that `bridge` and `run` write or recognize themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from rootsd.core.errors import RootsdError
from rootsd.wire.jsonrpc import (
    INTERNAL_ERROR,
    ErrorResponse,
    Id,
    Notification,
    Response,
    encode,
    parse,
)

SCAN_BYTES = 600
"""The method of a notification, or the id of a response, is within this many bytes of the start or
the end of its line.
"""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
INITIALIZED = "notifications/initialized"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ROOTS_CHANGED = "notifications/roots/list_changed"

_SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
_NOTIFICATION_BY_FILTER = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": RESOURCES_CHANGED,
}
# How notifications and responses usually start. Some servers write them differently.
_NOTIFICATION_PREFIX = b'{"jsonrpc":"2.0","method":'
RESULT_PREFIX = b'{"result":'
"""The start of a response from servers with the TypeScript SDK, which write the id last."""
_ID = rb'(-?(?:0|[1-9][0-9]{0,18})|"[ !#-\[\]-~]*")'
_FIRST_ID = re.compile(rb'\{"jsonrpc": ?"2.0", ?"id": ?' + _ID + rb', ?"(?:result|error)":')
_LAST_ID = re.compile(rb', ?"id": ?' + _ID + rb"\}\s*\Z")


def response_id(line: bytes) -> Id | None:
    """Return the id of the request that a line answers, or None if it is not a response."""
    if line.startswith(_NOTIFICATION_PREFIX):
        return None
    if (id_ := quick_response_id(line)) is not None:
        return id_
    message = parse(line)
    return message.id if isinstance(message, Response | ErrorResponse) else None


def quick_response_id(line: bytes) -> Id | None:
    """Return the same id from the start or the end of the line, or None if it is not there."""
    if found := _FIRST_ID.match(line, 0, SCAN_BYTES):
        return _id_in(found[1])
    if not line.startswith(RESULT_PREFIX):
        return None
    # The match is a member of the outermost object. A quote after a comma begins a string, unless
    # the comma is inside a string. But then the quote ends that string, and no colon may follow.
    found = _LAST_ID.search(line, max(0, len(line) - SCAN_BYTES))
    return _id_in(found[1]) if found else None


_RESPONSE = re.compile(rb'\s*\[?\s*\{(?=.*"jsonrpc")(?=.*"(?:result|error)")', re.DOTALL)


def looks_like_response(line: bytes) -> bool:
    """Return whether a line that cannot be parsed was meant as a response."""
    return _RESPONSE.match(line) is not None


def cancelled_id(notification: Notification) -> Id | None:
    """Return the id of the request that a notification cancels, or None."""
    match notification:
        case Notification(method, {"requestId": int() | str() as id_}) if method == CANCELLED:
            return None if isinstance(id_, bool) else id_
        case _:
            return None


def _id_in(text: bytes) -> Id:
    id_: Id = json.loads(text)
    return id_


def encode_error(id_: Id, error: RootsdError) -> bytes:
    """Return the error response to the request `id_`, with the message and the remedy."""
    data = {"reason": error.code.value, "remedy": error.remedy}
    text = f"{error.message}; try: {error.remedy}"
    return encode(ErrorResponse(id_, INTERNAL_ERROR, text, data))


def encode_resource_updated(uri: str) -> bytes:
    """Return the notification that a resource changed, for protocol versions with a handshake."""
    return encode(Notification(RESOURCE_UPDATED, {"uri": uri}))


def subscription_id(notification: Notification) -> Id | None:
    """Return the id of the `subscriptions/listen` that a notification belongs to, or None."""
    match notification.params:
        case {"_meta": dict() as meta}:
            id_ = meta.get(_SUBSCRIPTION_ID)
            return id_ if isinstance(id_, int | str) else None
        case _:
            return None


def change_notifications(acknowledgement: Notification) -> Iterator[bytes]:
    """Yield a notification for everything that a `subscriptions/listen` stream covers."""
    params = acknowledgement.params
    honoured = params.get("notifications") if isinstance(params, dict) else None
    if not isinstance(honoured, dict):
        return
    meta = {"_meta": {_SUBSCRIPTION_ID: subscription_id(acknowledgement)}}
    for name, method in _NOTIFICATION_BY_FILTER.items():
        if honoured.get(name) is True:
            yield encode(Notification(method, dict(meta)))
    for uri in honoured.get("resourceSubscriptions") or ():
        yield encode(Notification(RESOURCE_UPDATED, {**meta, "uri": uri}))
