"""`rootsd/hello`: how our own bridges and relays introduce themselves to the daemon.

It is an ordinary JSON-RPC request, so that a daemon that does not know it answers -32601 and both
go on as with any MCP client. It comes first on the connection or not at all. A field that this
version does not know makes the hello unusable: an unknown field might have narrowed the scope,
and ignoring it would publish more than was asked for.

The daemon decides once what the working directory of a session stands for. Its answer says so in
`start`. A bridge or relay that connects again, to the same daemon or to the next one, sends that
`start` along, and the session goes on as it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rootsd.core.errors import ErrorCode, RootsdError
from rootsd.wire.jsonrpc import METHOD_NOT_FOUND, ErrorResponse, Id, Notification, Params, Request

HELLO_METHOD = "rootsd/hello"
REPORTED_ROOTS_METHOD = "rootsd/told"
"""The notice by which a relay says what its server was told: it may be less than it was given."""
PROPOSED_FOLDER_METHOD = "rootsd/proposed"
"""The notice by which a relay makes known a folder that its client has open and that is not
approved. It is no request: no session waits for an answer."""
HELLO_VERSION = 1

_CLIENT_LIMIT = 128
_MAX_REPORTED_NAMES = 20
_TAG, _CWD = "tag:", "cwd"
_FIELDS = frozenset({"version", "client", "only", "tags", "cwd", "workspace", "start", "any_uri"})


class ResumeState(NamedTuple):
    """The beginning of a session, as the daemon told it: the project that held the working
    directory (absolute, None for none), and the number of the newest approval then."""

    anchor: str | None = None
    approvals: int = 0


class RequestedScope(NamedTuple):
    """Which part of the published set a connection asks for.

    A root fits that bears one of the names or one of the tags, that held the folder `cwd`
    (absolute) when the session began, or that is in the workspace of the folder `workspace`
    (absolute). Where none of the four is given, all fit. `any_uri` adds those that are no
    `file://` URIs to `roots/list`. `start` is set where a session goes on.
    """

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cwd: str | None = None
    any_uri: bool = False
    workspace: str | None = None
    start: ResumeState | None = None

    @property
    def narrows(self) -> bool:
        """Whether a daemon that ignored the scope would give more than was asked for."""
        by_words = bool(self.names or self.tags)
        return by_words or self.cwd is not None or self.workspace is not None


class Hello(NamedTuple):
    """Who connects and what for. `client` is what a person calls that program; may be empty."""

    version: int = HELLO_VERSION
    client: str = ""
    scope: RequestedScope = RequestedScope()


class BadHello(ValueError):
    """The parameters are no hello that this version understands; the message says which."""


class ScopeRefused(RootsdError):
    """The daemon cannot narrow the connection as asked; going on would give more than that."""

    code = ErrorCode.REFUSED


def parse_scope(
    words: Iterable[str], working_directory: Callable[[], str], *, any_uri: bool
) -> RequestedScope:
    """The scope that `words` ask for: `cwd`, `tag:T`, or else the name of a root, as after
    `rootsd bridge --only`. Raises ValueError, and what `working_directory` raises."""
    names, tags, cwd = [], [], None
    for word in words:
        tag = word.removeprefix(_TAG)
        if word == _CWD:
            cwd = working_directory()
        elif not word.startswith(_TAG):
            names.append(word)
        elif tag:
            tags.append(tag)
        else:
            raise ValueError(f"{_TAG} needs the name of a tag")
    return RequestedScope(tuple(names), tuple(tags), cwd, any_uri)


def encode_hello(hello: Hello, id_: Id) -> Request:
    """The request that carries `hello`; what is empty is left out."""
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
    return Request(id_, HELLO_METHOD, params)


def hello_result(rootsd: str, start: ResumeState | None) -> dict[str, Any]:
    """Return the result that answers a hello: the versions of this protocol and of `rootsd`, and
    how the session began, if it has a working directory."""
    result: dict[str, Any] = {"version": HELLO_VERSION, "rootsd": rootsd}
    if start is not None:
        result["start"] = start._asdict()
    return result


def resume_hello(hello: Hello, result: object) -> Hello:
    """Return the hello for the next connection, after the daemon has answered with `result`.

    Raises ScopeRefused where the answer cannot be used: a session that began anew could see more.
    """
    match result:
        case {"start": start}:
            try:
                scope = hello.scope._replace(start=_start_in(start))
            except BadHello as error:
                raise ScopeRefused(
                    f"the daemon's answer is wrong: {error}", "rootsd up"
                ) from error
            return hello._replace(scope=scope)
        case _:
            return hello


class ReportedRoots(NamedTuple):
    """How many roots a relay has told its server of, and the names of the first of them."""

    roots: int
    names: tuple[str, ...] = ()


def encode_reported_roots(told: ReportedRoots) -> Notification:
    """The notice of it; bounded, as the daemon reads no long lines."""
    names = [name[:_CLIENT_LIMIT] for name in told.names[:_MAX_REPORTED_NAMES]]
    return Notification(REPORTED_ROOTS_METHOD, {"roots": told.roots, "names": names})


def encode_proposed_folder(path: str, reason: str) -> Notification:
    """Return the notice of a folder, with the reason for the user."""
    return Notification(PROPOSED_FOLDER_METHOD, {"path": path, "reason": reason})


def decode_reported_roots(params: Params) -> ReportedRoots | None:
    """What such a notice says; None where it is not in order."""
    match params:
        case {"roots": int() as roots, "names": list() as names} if (
            not isinstance(roots, bool)
            and roots >= len(names)
            and all(isinstance(name, str) for name in names)
        ):
            return ReportedRoots(roots, tuple(names[:_MAX_REPORTED_NAMES]))
        case _:
            return None


def decode_hello(params: Params) -> Hello:
    """The hello in the parameters of a request. Raises BadHello."""
    if not isinstance(params, dict):
        raise BadHello("a hello has named parameters")
    if unknown := sorted(params.keys() - _FIELDS):
        raise BadHello(f"unknown: {', '.join(unknown)}")
    version = params.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadHello("version is a number from 1")
    any_uri = params.get("any_uri", False)
    if not isinstance(any_uri, bool):
        raise BadHello("any_uri is true or false")
    scope = RequestedScope(
        _texts(params, "only"),
        _texts(params, "tags"),
        _text(params, "cwd"),
        any_uri,
        _text(params, "workspace"),
        _start_in(params["start"]) if "start" in params else None,
    )
    return Hello(version, (_text(params, "client") or "")[:_CLIENT_LIMIT], scope)


def scope_refusal(fault: ErrorResponse) -> ScopeRefused:
    """The error that stands for a daemon's `fault` in answer to a hello that narrows."""
    reason = fault.message
    match fault.data:
        case {"reason": str() as said}:
            reason = said
        case _:
            pass
    if fault.code == METHOD_NOT_FOUND:
        reason = "it is too old"
    return ScopeRefused(f"the daemon cannot narrow this session: {reason}", "rootsd up")


def _start_in(start: object) -> ResumeState:
    match start:
        case {"anchor": None | str() as anchor, "approvals": int() as approvals} if (
            not isinstance(approvals, bool) and approvals >= 0
        ):
            return ResumeState(anchor, approvals)
        case _:
            raise BadHello("start is a beginning that a daemon told")


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
