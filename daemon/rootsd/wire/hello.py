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
from typing import Any, TypedDict

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.core.quick_tuple import NamedTuple
from rootsd.core.record import BadRecord, from_json, to_json
from rootsd.wire.jsonrpc import (
    METHOD_NOT_FOUND,
    ErrorResponse,
    Id,
    Notification,
    Params,
    Request,
    Response,
)
from rootsd.wire.requested_scope import RequestedScope

HELLO_METHOD = "rootsd/hello"
REPORTED_ROOTS_METHOD = "rootsd/told"
"""The notification with which a run proxy reports the roots that it sent to its server. There may
be fewer than the daemon published.
"""
PROPOSED_FOLDER_METHOD = "rootsd/proposed"
"""The notification with which a run proxy proposes a folder that its client has open but that is
not approved. It is not a root request: no session waits for an answer.
"""
MOVE_METHOD = "rootsd/move"
"""The request with which a bridge or run proxy says where its session works now."""
HELLO_VERSION = 1

_CLIENT_LIMIT = 128
_MAX_REPORTED_NAMES = 20


class ResumeState(NamedTuple):
    """The facts about the start of a session, so that it can continue on a new connection."""

    anchor: str | None
    """The path of the project that contained the working directory, or null."""
    approvals: int
    """The number of the newest approval at that time."""
    added: tuple[str, ...] = ()
    """The paths of the roots that contain the other folders of the session."""


class Hello(NamedTuple):
    """The program that connects, and the scope of its session. It may leave out any key but
    `version`, and any key of the scope.
    """

    version: int = HELLO_VERSION
    """1."""
    client: str = ""
    """Its name for people."""
    scope: RequestedScope = RequestedScope()
    """The roots that it asks for."""
    start: ResumeState | None = None
    """What the daemon sent when the session began, to continue it."""


class HelloResult(NamedTuple):
    """The answer to a hello."""

    version: int = HELLO_VERSION
    """The version of this request."""
    rootsd: str = ""
    """The version of the daemon."""
    start: ResumeState | None = None
    """What to send on the next connection of the session. Null for a session without a working
    directory.
    """


class WorkFolders(NamedTuple):
    """Where a session works now."""

    folders: tuple[str, ...]
    """Absolute paths. The first one is its working folder; the others were added to it. None: it
    is back where it began.
    """


class MoveResult(NamedTuple):
    """The answer to a move. The session moves only if its working folder is in a root."""

    outside: tuple[str, ...] = ()
    """The folders that lie in no root of the published set."""
    start: ResumeState | None = None
    """What to send on the next connection of the session. Null if it has not moved, or has no
    working directory in its scope.
    """


class ProposedFolderParams(TypedDict):
    """A folder that a run proxy proposes."""

    path: str
    """Its absolute path."""


class BadHello(ValueError):
    """Parameters that are not a valid hello. The message says why."""


class ScopeRefused(RootsdError):
    """A scope that the daemon cannot apply. The connection would get too many roots without it."""

    code = ErrorCode.REFUSED


def encode_hello(hello: Hello, id_: Id) -> Request:
    """Return the request that carries `hello`."""
    return Request(id_, HELLO_METHOD, hello_params(hello))


def hello_params(hello: Hello) -> dict[str, Any]:
    """Return the parameters for `hello`. Fields with default values are left out."""
    params = {"version": hello.version, **_given(hello)}
    return {**params, "scope": _given(hello.scope)} if "scope" in params else params


def resume_hello(hello: Hello, result: object) -> Hello:
    """Return the hello for the next connection, after the daemon answered with `result`.

    Raises ScopeRefused if the answer is not valid, because with another start, the session might
    get more roots.
    """
    try:
        start = from_json(HelloResult, result).start
    except BadRecord as error:
        raise ScopeRefused(f"the daemon's answer is not valid: {error}", "rootsd up") from error
    return hello if start is None else hello._replace(start=start)


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
    try:
        hello = from_json(Hello, params)
    except BadRecord as error:
        raise BadHello(str(error)) from error
    unknown = {*params}.difference(Hello._fields)
    unknown |= {*params.get("scope", ())}.difference(RequestedScope._fields)
    if unknown:
        raise BadHello(f"unknown: {', '.join(sorted(unknown))}")
    if "version" not in params or hello.version < 1:
        raise BadHello("version is a number from 1")
    return hello._replace(client=hello.client[:_CLIENT_LIMIT])


def encode_move(folders: WorkFolders, id_: Id) -> Request:
    """Return the request that says where a session works now."""
    return Request(id_, MOVE_METHOD, to_json(folders))


def read_move(answer: Response | ErrorResponse) -> MoveResult | RootsdError:
    """Return the outcome in a daemon's answer to a move, or why it cannot be known."""
    if isinstance(answer, ErrorResponse):
        return RootsdError(f"rootsd does not know this place: {answer.message}", "rootsd status")
    try:
        return from_json(MoveResult, answer.result)
    except BadRecord as error:
        return RootsdError(f"the daemon's answer is not valid: {error}", "rootsd up")


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


def _given(record: Hello | RequestedScope) -> dict[str, Any]:
    usual = record._field_defaults
    return {name: v for name, v in to_json(record).items() if getattr(record, name) != usual[name]}
