"""The lines that bridge and relay themselves say to a client, and what they look for in lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from rootsd.core.errors import RootsdError
from rootsd.wire.jsonrpc import INTERNAL_ERROR, Fault, Id, Notice, Reply, encode, parse

HEAD = 600
"""Within so many bytes of its line stand the method of a notice, and the id of an answer."""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
INITIALIZED = "notifications/initialized"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ROOTS_CHANGED = "notifications/roots/list_changed"

_STREAM = "io.modelcontextprotocol/subscriptionId"
_NOTICE_OF_FILTER = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": RESOURCES_CHANGED,
}
# How our daemons and most servers start a notice and an answer; others may do as they like.
_NOTICE = b'{"jsonrpc":"2.0","method":'
RESULT = b'{"result":'
"""So do servers made with the TypeScript SDK start an answer; its id comes last."""
_ID = rb'(-?(?:0|[1-9][0-9]{0,18})|"[ !#-\[\]-~]*")'
_FIRST_ID = re.compile(rb'\{"jsonrpc": ?"2.0", ?"id": ?' + _ID + rb', ?"(?:result|error)":')
_LAST_ID = re.compile(rb', ?"id": ?' + _ID + rb"\}\s*\Z")


def id_of_answer(line: bytes) -> Id | None:
    """The id of the request that a line answers; None where it answers none."""
    if line.startswith(_NOTICE):
        return None
    if (id_ := quick_id_of_answer(line)) is not None:
        return id_
    message = parse(line)
    return message.id if isinstance(message, Reply | Fault) else None


def quick_id_of_answer(line: bytes) -> Id | None:
    """The same from the ends of the line alone; None also where they do not tell."""
    if found := _FIRST_ID.match(line, 0, HEAD):
        return _id_in(found[1])
    if not line.startswith(RESULT):
        return None
    # In JSON a quote after a comma begins a string, unless the comma lies in one: then the quote
    # ends it, and what follows is no colon. So this is a member, and of the outermost object.
    found = _LAST_ID.search(line, max(0, len(line) - HEAD))
    return _id_in(found[1]) if found else None


def _id_in(text: bytes) -> Id:
    id_: Id = json.loads(text)
    return id_


def fault_line(id_: Id, error: RootsdError) -> bytes:
    """The answer to the request `id_` that says what went wrong, and what to type."""
    data = {"reason": error.code.value, "remedy": error.remedy}
    text = f"{error.message}; try: {error.remedy}"
    return encode(Fault(id_, INTERNAL_ERROR, text, data))


def updated(uri: str) -> bytes:
    """The notice of the handshake era that a resource has changed."""
    return encode(Notice(RESOURCE_UPDATED, {"uri": uri}))


def stream_of(notice: Notice) -> Id | None:
    """The id of the `subscriptions/listen` that a notice belongs to; None where to none."""
    match notice.params:
        case {"_meta": dict() as meta}:
            id_ = meta.get(_STREAM)
            return id_ if isinstance(id_, int | str) else None
        case _:
            return None


def news_of_stream(acknowledgement: Notice) -> Iterator[bytes]:
    """Notices as if all that a stream of `subscriptions/listen` listens to had changed."""
    params = acknowledgement.params
    honoured = params.get("notifications") if isinstance(params, dict) else None
    if not isinstance(honoured, dict):
        return
    meta = {"_meta": {_STREAM: stream_of(acknowledgement)}}
    for name, method in _NOTICE_OF_FILTER.items():
        if honoured.get(name) is True:
            yield encode(Notice(method, dict(meta)))
    for uri in honoured.get("resourceSubscriptions") or ():
        yield encode(Notice(RESOURCE_UPDATED, {**meta, "uri": uri}))
