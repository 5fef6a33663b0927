"""What each request means for a session that has to be brought to another daemon. Pure."""

from __future__ import annotations

from enum import Enum, auto

from rootsd.wire.jsonrpc import Request


class Role(Enum):
    """What to do about a request when the daemon that has it is lost, or has answered it."""

    ONCE = auto()
    """Not to be asked twice: it may have done something, and might do it again."""
    AGAIN = auto()
    INITIALIZE = auto()
    SUBSCRIBE = auto()
    UNSUBSCRIBE = auto()
    LISTEN = auto()
    ROOTS = auto()
    HELLO = auto()


_ROLES = {
    "completion/complete": Role.AGAIN,
    "initialize": Role.INITIALIZE,
    "logging/setLevel": Role.AGAIN,
    "ping": Role.AGAIN,
    "prompts/get": Role.AGAIN,
    "prompts/list": Role.AGAIN,
    "resources/list": Role.AGAIN,
    "resources/read": Role.AGAIN,
    "resources/subscribe": Role.SUBSCRIBE,
    "resources/templates/list": Role.AGAIN,
    "resources/unsubscribe": Role.UNSUBSCRIBE,
    "roots/list": Role.ROOTS,
    "server/discover": Role.AGAIN,
    "subscriptions/listen": Role.LISTEN,
    "tools/list": Role.AGAIN,
}
# request_root too: a folder that waits for a decision is not made to wait twice.
_TOOLS_AGAIN = frozenset({"list_roots", "request_root", "resolve_root"})


def role_of(request: Request) -> Role:
    """The role of a client's request; what is not known here may not be asked twice."""
    match request:
        case Request(_, "tools/call", {"name": str() as name}):
            return Role.AGAIN if name in _TOOLS_AGAIN else Role.ONCE
        case _:
            return _ROLES.get(request.method, Role.ONCE)
