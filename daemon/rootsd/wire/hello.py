"""`rootsd/hello`: the request with which bridges and run proxies introduce themselves.

It is an ordinary JSON-RPC request, and it must be the first message on the connection. A daemon
that does not know it answers -32601, and both sides continue as with any MCP client. A hello with
an unknown field is invalid: the field might narrow the scope, and without it, the sender would get
more than it asked for.

When a session begins, the daemon finds the project that contains its working directory, and
returns it as `start`. When a bridge or run proxy connects again, to the same daemon or a new one,
it sends `start` with its hello. So the session continues with the same project.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.wire.jsonrpc import METHOD_NOT_FOUND, ErrorResponse, Id, Notification, Params, Request
from rootsd.wire.requested_scope import RequestedScope, ResumeState

HELLO_METHOD = "rootsd/hello"
REPORTED_ROOTS_METHOD = "rootsd/told"
"""The notification with which a run proxy reports the roots that it sent to its server. There may
be fewer than the daemon published.
"""
PROPOSED_FOLDER_METHOD = "rootsd/proposed"
"""The notification with which a run proxy proposes a folder that its client has open but that is
not approved. It is not a root request: no session waits for an answer.
"""
HELLO_VERSION = 1

_CLIENT_LIMIT = 128
_MAX_REPORTED_NAMES = 20
_FIELDS = frozenset(
    {"version", "client", "only", "tags", "cwd", "workspace", "start", "any_uri", "focus"}
)


class ResumeStateItem(TypedDict):
    """The facts about the start of a session, so that it can continue on a new connection."""

    anchor: str | None
    """The path of the project that contained the working directory, or null."""
    approvals: int
    """The number of the newest approval at that time."""


class HelloParams(TypedDict):
    """The program that connects, and the scope of its session."""

    version: int
    """1."""
    client: NotRequired[str | None]
    """Its name for people."""
    only: NotRequired[list[str]]
    """The names of roots."""
    tags: NotRequired[list[str]]
    """The tags of roots."""
    cwd: NotRequired[str | None]
    """An absolute path: the root that contained it when the session began."""
    workspace: NotRequired[str | None]
    """An absolute path: the workspace of a session that begins there."""
    start: NotRequired[ResumeStateItem]
    """What the daemon sent when the session began, to continue it."""
    any_uri: NotRequired[bool]
    """Whether to list roots that are not folders, too."""
    focus: NotRequired[bool]
    """Whether to list the roots with the tag of the focus."""


class HelloResult(TypedDict):
    """The answer to a hello."""

    version: int
    """The version of this request."""
    rootsd: str
    """The version of the daemon."""
    start: NotRequired[ResumeStateItem]
    """What to send on the next connection of the session. Left out for a session without a working
    directory.
    """


class ReportedRootsParams(TypedDict):
    """The roots that a run proxy has sent to its server."""

    roots: int
    """Their number."""
    names: list[str]
    """The first names."""


class ProposedFolderParams(TypedDict):
    """A folder that a run proxy proposes."""

    path: str
    """Its absolute path."""


class Hello(NamedTuple):
    """The program that connects, and its scope. `client` is its name for people, or empty."""

    version: int = HELLO_VERSION
    client: str = ""
    scope: RequestedScope = RequestedScope()


class BadHello(ValueError):
    """Parameters that are not a valid hello. The message says why."""


class ScopeRefused(RootsdError):
    """A scope that the daemon cannot apply. The connection would get too many roots without it."""

    code = ErrorCode.REFUSED


def encode_hello(hello: Hello, id_: Id) -> Request:
    """Return the request that carries `hello`."""
    return Request(id_, HELLO_METHOD, hello_params(hello))


def hello_params(hello: Hello) -> dict[str, Any]:
    """Return the parameters for `hello`. Empty fields are left out."""
    params: dict[str, Any] = {"version": hello.version}
    if hello.client:
        params["client"] = hello.client
    if hello.scope.names:
        params["only"] = list(hello.scope.names)
    if hello.scope.tags:
        params["tags"] = list(hello.scope.tags)
    if hello.scope.cwd is not None:
        params["cwd"] = hello.scope.cwd
    if hello.scope.workspace is not None:
        params["workspace"] = hello.scope.workspace
    if hello.scope.start is not None:
        params["start"] = hello.scope.start._asdict()
    if hello.scope.any_uri:
        params["any_uri"] = True
    if hello.scope.focus:
        params["focus"] = True
    return params


def hello_result(rootsd: str, start: ResumeState | None) -> HelloResult:
    """Return the result for a hello. `start` is None for a session without a working directory."""
    result = HelloResult(version=HELLO_VERSION, rootsd=rootsd)
    if start is not None:
        result["start"] = resume_item(start)
    return result


def resume_item(start: ResumeState) -> ResumeStateItem:
    """Return the start of a session for its peer."""
    return ResumeStateItem(anchor=start.anchor, approvals=start.approvals)


def resume_hello(hello: Hello, result: object) -> Hello:
    """Return the hello for the next connection, after the daemon answered with `result`.

    Raises ScopeRefused if the answer is not valid, because with another start, the session might
    get more roots.
    """
    match result:
        case {"start": start}:
            try:
                scope = hello.scope._replace(start=_start_in(start))
            except BadHello as error:
                raise ScopeRefused(
                    f"the daemon's answer is not valid: {error}", "rootsd up"
                ) from error
            return hello._replace(scope=scope)
        case _:
            return hello


def encode_reported_roots(names: Sequence[str]) -> Notification:
    """Return the notification about these roots. Limit its length: the daemon reads no long
    lines.
    """
    first = [name[:_CLIENT_LIMIT] for name in names[:_MAX_REPORTED_NAMES]]
    return Notification(REPORTED_ROOTS_METHOD, {"roots": len(names), "names": first})


def encode_proposed_folder(path: str) -> Notification:
    """Return the notification for a proposed folder."""
    return Notification(PROPOSED_FOLDER_METHOD, {"path": path})


def decode_reported_roots(params: Params) -> tuple[int, tuple[str, ...]] | None:
    """Return the number and the first names of the reported roots, or None if not valid."""
    match params:
        case {"roots": int() as roots, "names": list() as names} if (
            not isinstance(roots, bool)
            and roots >= len(names)
            and all(isinstance(name, str) for name in names)
        ):
            return roots, tuple(names[:_MAX_REPORTED_NAMES])
        case _:
            return None


def decode_hello(params: Params) -> Hello:
    """Return the hello in the parameters of a request. Raises BadHello."""
    if not isinstance(params, dict):
        raise BadHello("a hello has named parameters")
    if unknown := sorted(params.keys() - _FIELDS):
        raise BadHello(f"unknown: {', '.join(unknown)}")
    version = params.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadHello("version is a number from 1")
    scope = RequestedScope(
        _texts(params, "only"),
        _texts(params, "tags"),
        _text(params, "cwd"),
        _truth(params, "any_uri"),
        _text(params, "workspace"),
        _start_in(params["start"]) if "start" in params else None,
        _truth(params, "focus"),
    )
    return Hello(version, (_text(params, "client") or "")[:_CLIENT_LIMIT], scope)


def scope_refusal(response: ErrorResponse) -> ScopeRefused:
    """Return the error after a daemon refused a hello whose scope narrows."""
    reason = response.message
    match response.data:
        case {"reason": str() as said}:
            reason = said
        case _:
            pass
    if response.code == METHOD_NOT_FOUND:
        reason = "it is too old"
    return ScopeRefused(f"the daemon cannot narrow this session: {reason}", "rootsd up")


def _start_in(start: object) -> ResumeState:
    match start:
        case {"anchor": None | str() as anchor, "approvals": int() as approvals} if (
            not isinstance(approvals, bool) and approvals >= 0
        ):
            return ResumeState(anchor, approvals)
        case _:
            raise BadHello("start is not one that a daemon sent")


def _truth(params: dict[str, Any], field: str) -> bool:
    value = params.get(field, False)
    if not isinstance(value, bool):
        raise BadHello(f"{field} is true or false")
    return value


def _text(params: dict[str, Any], field: str) -> str | None:
    value = params.get(field)
    if value is not None and not isinstance(value, str):
        raise BadHello(f"{field} is a string")
    return value


def _texts(params: dict[str, Any], field: str) -> tuple[str, ...]:
    value = params.get(field, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadHello(f"{field} is a list of strings")
    return tuple(value)
