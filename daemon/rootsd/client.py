"""The approved roots, for authors of MCP clients and servers in Python.

`list_roots_callback` goes into the SDK's `Client`, `watch_roots` tells of changes, and
`is_path_allowed` is for servers. Where no daemon runs, one is started if `rootsd up` was typed and
`rootsd down` was not since. Standard library only, but for the types that the callback returns.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlsplit

from rootsd.core.errors import DaemonUnreachable, ErrorCode, RootsdError
from rootsd.service import autostart
from rootsd.system.ipc.connect import NotRunning, connect
from rootsd.system.runtime_dir import find_runtime_dirs
from rootsd.wire import hello
from rootsd.wire.jsonrpc import (
    INTERNAL_ERROR,
    ErrorResponse,
    Notification,
    Request,
    Response,
    encode,
    parse,
)

if TYPE_CHECKING:
    from mcp_types import ErrorData, ListRootsResult

__all__ = [
    "DaemonUnreachable", "Root", "RootsdError", "is_path_allowed", "list_roots",
    "list_roots_callback", "watch_roots",
]  # fmt: skip

_PATIENCE_S = 10.0
_GRACE_S = 5.0
_FIRST_PAUSE_S, _PAUSE_S = 0.05, 2.0
_LONGEST_ANSWER = 1 << 28
_HELLO_ID = 0
_CHANGED = "notifications/roots/list_changed"
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "rootsd.client", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Root:
    """An approved root. `path` is None where it is no folder; `access` is `read-write`, or `read`
    where the user asks that nothing in it be changed."""

    uri: str
    name: str
    path: Path | None
    kind: str
    access: str
    tags: tuple[str, ...]


def list_roots(
    *, only: Sequence[str] = (), any_uri: bool = False, client: str = ""
) -> tuple[Root, ...]:
    """The roots that are approved now.

    `only` narrows them as `rootsd bridge --only` does: names, `tag:T`, `cwd`. `any_uri` adds those
    that are no folders. `client` is the name that `rootsd sessions` shows. Raises RootsdError, of
    which DaemonUnreachable says that no daemon answers.
    """
    with closing(_connect()) as channel:
        _greet(channel, _greeting(only, client, any_uri=any_uri))
        return _roots_of(_ask(channel, "roots/list", None))


def is_path_allowed(path: str | bytes | os.PathLike[str], *, write: bool = False) -> bool:
    """Whether `path` lies in an approved root, and with `write` in one that may be changed.

    Symbolic links are followed first, and what does not exist yet counts as lying where it would
    be made; so open what you asked about soon, and without following links. Raises RootsdError
    where that cannot be told: treat it as a no.
    """
    try:
        text = os.fsencode(os.path.realpath(path)).decode()
    except ValueError:  # a NUL byte, or not UTF-8: no root holds such a path
        return False
    params = {"name": "resolve_root", "arguments": {"path": text}, "_meta": _META}
    with closing(_connect()) as channel:
        found = _ask(channel, "tools/call", params).get("structuredContent") or {}
    root = found.get("root") or {}
    return found.get("inside") is True and (not write or root.get("access") == "read-write")


async def list_roots_callback(context: object) -> ListRootsResult | ErrorData:  # noqa: ARG001
    """Answers `roots/list` with the approved roots: `Client(…, list_roots_callback=…)`."""
    from anyio import to_thread  # noqa: PLC0415  # the SDK brings both
    from mcp_types import ErrorData, ListRootsResult  # noqa: PLC0415

    try:
        return ListRootsResult.model_validate(await to_thread.run_sync(_raw_roots))
    except RootsdError as error:
        data = {"reason": error.code.value, "remedy": error.remedy}
        return ErrorData(code=INTERNAL_ERROR, message=error.message, data=data)


async def watch_roots(
    *, only: Sequence[str] = (), any_uri: bool = False, client: str = ""
) -> AsyncGenerator[tuple[Root, ...], None]:
    """Yield the approved roots now, and again whenever they have changed; runs on asyncio.

    A daemon that restarts is waited for. Where none comes back the roots are none until one does,
    as nothing is known to be approved then. Arguments as for `list_roots`. Raises RootsdError
    where there is no daemon at the start, or one that does not heed `only`.
    """
    greeting = _Greeting(_greeting(only, client, any_uri=any_uri))
    known: tuple[Root, ...] | None = None
    lost_at, pause = 0.0, 0.0
    while True:
        try:
            # One attempt to start it for each time it is lost.
            channel = await asyncio.to_thread(_connect, start=not pause)
        except RootsdError:
            if known is None:
                raise
            if known and time.monotonic() - lost_at > _GRACE_S:
                known = ()
                yield known
        else:
            async with aclosing(_changes(channel, greeting)) as changes:
                async for roots in changes:
                    pause = 0.0
                    if roots != known:
                        known = roots
                        yield roots
            if not pause:
                lost_at = time.monotonic()
        pause = min(max(2 * pause, _FIRST_PAUSE_S), _PAUSE_S)
        await _wait(pause)


@dataclass(slots=True)
class _Greeting:
    """The hello for the next connection of one session; None where the set is not narrowed."""

    hello: hello.Hello | None


async def _changes(
    channel: socket.socket, greeting: _Greeting
) -> AsyncGenerator[tuple[Root, ...], None]:
    """The roots as often as the daemon says that they changed, until it goes away."""
    ids = count(_HELLO_ID + 1)
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=_LONGEST_ANSWER)
    try:
        if greeting.hello is None:
            writer.write(encode(Request(next(ids), "roots/list")))
        else:
            writer.write(encode(hello.encode_hello(greeting.hello, _HELLO_ID)))
        async for line in reader:
            match parse(line):
                case (Response(id_) | ErrorResponse(id_)) as answer if (
                    id_ == _HELLO_ID and greeting.hello
                ):
                    greeting.hello = _welcomed(answer, greeting.hello)
                    writer.write(encode(Request(next(ids), "roots/list")))
                case Notification(method) if method == _CHANGED:
                    writer.write(encode(Request(next(ids), "roots/list")))
                case Response(_, dict() as result):
                    yield _roots_of(result)
                case ErrorResponse():
                    yield ()  # it cannot tell, so nothing is known to be approved
                case _:
                    pass
    except OSError:
        pass
    finally:
        writer.close()


async def _wait(seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


def _raw_roots() -> dict[str, Any]:
    with closing(_connect()) as channel:
        return _ask(channel, "roots/list", None)


def _connect(*, start: bool = True) -> socket.socket:
    """A connection to the daemon, started where it may be. Raises RootsdError."""
    try:
        channel = _connect_to_first()
    except NotRunning:
        if not start:
            raise
        autostart.start_daemon()
        channel = _connect_to_first()
    channel.settimeout(_PATIENCE_S)
    return channel


def _connect_to_first() -> socket.socket:
    *others, last = find_runtime_dirs()
    for folder in others:
        with suppress(NotRunning):
            return connect(folder.mcp_socket)
    return connect(last.mcp_socket)


def _greeting(only: Sequence[str], client: str, *, any_uri: bool) -> hello.Hello | None:
    """What to say first. Raises ValueError for words that `only` does not have."""
    greeting = hello.Hello(
        client=client, scope=hello.parse_scope(only, os.getcwd, any_uri=any_uri)
    )
    return None if greeting == hello.Hello() else greeting


def _greet(channel: socket.socket, greeting: hello.Hello | None) -> None:
    if greeting is not None:
        _welcomed(_exchange(channel, hello.encode_hello(greeting, _HELLO_ID)), greeting)


def _welcomed(answer: Response | ErrorResponse, greeting: hello.Hello) -> hello.Hello:
    """Return the hello for the next connection. Raise RootsdError where the daemon would give
    more than was asked for."""
    if isinstance(answer, Response):
        return hello.resume_hello(greeting, answer.result)
    if greeting.scope.narrows:
        raise RootsdError(f"the daemon cannot narrow this: {answer.message}", "rootsd up")
    return greeting


def _ask(channel: socket.socket, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    match _exchange(channel, Request(_HELLO_ID + 1, method, params)):
        case Response(_, dict() as result):
            return result
        case ErrorResponse(_, _, message, {"reason": str() as code, "remedy": str() as remedy}):
            error = RootsdError(message, remedy)
            with suppress(ValueError):  # a word of a newer daemon
                error.code = ErrorCode(code)
            raise error
        case answer:
            raise RootsdError(f"the daemon answers {answer!a:.200}", "rootsd status")


def _exchange(channel: socket.socket, request: Request) -> Response | ErrorResponse:
    """The answer to a request, whatever is told before it. Raises DaemonUnreachable."""
    try:
        channel.sendall(encode(request))
        with channel.makefile("rb") as lines:
            for line in lines:
                answer = parse(line)
                if isinstance(answer, Response | ErrorResponse) and answer.id == request.id:
                    return answer
    except TimeoutError as error:
        raise DaemonUnreachable("the daemon does not answer", "rootsd status") from error
    except OSError:
        pass
    raise DaemonUnreachable("the daemon hung up before it answered", "rootsd status")


def _roots_of(result: dict[str, Any]) -> tuple[Root, ...]:
    return tuple(_root_of(item, item.get("_meta") or {}) for item in result.get("roots") or ())


def _root_of(item: dict[str, Any], meta: dict[str, Any]) -> Root:
    uri = str(item["uri"])
    parts = urlsplit(uri)
    path = os.fsdecode(unquote_to_bytes(parts.path)) if parts.scheme == "file" else None
    return Root(
        uri,
        str(item.get("name", "")),
        None if path is None else Path(path),
        str(meta.get("rootsd/kind", "")),
        str(meta.get("rootsd/access", "read")),  # in doubt, less
        tuple(meta.get("rootsd/tags") or ()),
    )
