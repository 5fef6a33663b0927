"""The Python API for authors of MCP clients and servers.

* `list_roots` returns the approved roots, and `watch_roots` yields them again after each change.
* `is_path_allowed` is for servers.
* `list_roots_callback` answers `roots/list` for the SDK's `Client`.

If no daemon runs, these functions start one, provided that the user ran `rootsd up` and has not
run `rootsd down` since. The module needs only the standard library, except for the types that the
callback returns.

docs/reference/python.md is generated from the docstrings of this module.
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
from rootsd.link.connect import NotRunning
from rootsd.link.daemon_link import connect_to_daemon
from rootsd.service import autostart
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
from rootsd.wire.requested_scope import parse_scope

if TYPE_CHECKING:
    from mcp_types import ErrorData, ListRootsResult

__all__ = [
    "DaemonUnreachable", "Root", "RootsdError", "is_path_allowed", "list_roots",
    "list_roots_callback", "watch_roots",
]  # fmt: skip

_TIMEOUT_S = 10.0
_GRACE_S = 5.0
_FIRST_PAUSE_S, _PAUSE_S = 0.05, 2.0
_MAX_RESPONSE_BYTES = 1 << 28
_HELLO_ID = 0
_CHANGED = "notifications/roots/list_changed"
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "rootsd.client", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Root:
    """An approved root."""

    uri: str
    """The URI that MCP clients get, such as `file:///home/ann/src/api`."""
    name: str
    """The name that the user knows it by. No two roots have the same name."""
    path: Path | None
    """The absolute path without symbolic links, or None if the root is not a folder."""
    kind: str
    """The kind of the project, such as `git`, `git-worktree`, `project`, or `uri`. Newer versions
    of rootsd may have further kinds.
    """
    access: str
    """`read-write`, or `read` if the user wants nothing in it to be changed."""
    tags: tuple[str, ...]
    """The tags that the user gave it, sorted."""


def list_roots(
    *, only: Sequence[str] = (), any_uri: bool = False, client: str = ""
) -> tuple[Root, ...]:
    """Return the approved roots of this moment, sorted by name.

    * `only` narrows them, as `rootsd bridge --only` does. Each word is the name of a root, `tag:T`
      for the roots with the tag T, `focus` for those with the tag of the user's focus, or `cwd`
      for the root that holds the working directory. A root that fits one of the words is returned.
      Without words, the roots are those of a client without a scope of its own.
    * `any_uri` adds the roots that are not folders.
    * `client` is the name that `rootsd sessions` shows. It is cut to 128 characters.

    Raises DaemonUnreachable if no daemon runs, or if it is silent for ten seconds. Raises
    RootsdError for any other refusal of the daemon, and ValueError for the word `tag:` without a
    tag.
    """
    with closing(_connect()) as channel:
        _greet(channel, _greeting(only, client, any_uri=any_uri))
        return _roots_of(_ask(channel, "roots/list", None))


def is_path_allowed(path: str | bytes | os.PathLike[str], *, write: bool = False) -> bool:
    """Return whether `path` lies in an approved root; with `write`, in a writable one.

    A relative path starts at the working directory. Symbolic links are resolved first. A path that
    does not exist yet counts by the place where it would be created. No root holds a path that is
    not UTF-8.

    The answer holds for this moment only. Resolve the path yourself, ask about the resolved one,
    open it at once, and do not follow links then.

    Raises DaemonUnreachable if no daemon runs, or if it is silent for ten seconds, and RootsdError
    for any other refusal of the daemon. Treat both as a no.
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
    """Answer the request `roots/list` of a server with the approved roots.

    Pass the function itself to the SDK: `Client(…, list_roots_callback=list_roots_callback)`. It
    needs the package `mcp`, and ignores `context`. It never raises: if the daemon cannot answer,
    the server gets the JSON-RPC error -32603 with the message, and with `reason` (the code of the
    RootsdError) and `remedy` as its data.
    """
    from anyio import to_thread  # noqa: PLC0415  # the SDK depends on both
    from mcp_types import ErrorData, ListRootsResult  # noqa: PLC0415

    try:
        return ListRootsResult.model_validate(await to_thread.run_sync(_raw_roots))
    except RootsdError as error:
        data = {"reason": error.code.value, "remedy": error.remedy}
        return ErrorData(code=INTERNAL_ERROR, message=error.message, data=data)


async def watch_roots(
    *, only: Sequence[str] = (), any_uri: bool = False, client: str = ""
) -> AsyncGenerator[tuple[Root, ...], None]:
    """Yield the approved roots now, and again after each change, until the caller stops.

    The arguments are those of `list_roots`. This runs on asyncio. Each value is the whole set, and
    differs from the one before. The connection stays open, so `rootsd sessions` lists it.

    If the daemon restarts, this waits for it. If none is back after five seconds, it yields an
    empty tuple until one is, because nothing is known to be approved then. It does the same while
    the daemon answers with an error.

    Raises RootsdError if no daemon runs at the start, or if the daemon cannot apply `only`, and
    ValueError for the word `tag:` without a tag.
    """
    greeting = _Greeting(_greeting(only, client, any_uri=any_uri))
    known: tuple[Root, ...] | None = None
    lost_at, pause = 0.0, 0.0
    while True:
        try:
            # Try to start a daemon once after each loss.
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
    """The hello for the next connection of one session; None if nothing narrows the roots."""

    hello: hello.Hello | None


async def _changes(
    channel: socket.socket, greeting: _Greeting
) -> AsyncGenerator[tuple[Root, ...], None]:
    """Yield the roots whenever the daemon announces a change, until it hangs up."""
    ids = count(_HELLO_ID + 1)
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=_MAX_RESPONSE_BYTES)
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
                    yield ()  # after an error, nothing is known to be approved
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
    """Return a connection to the daemon, and start one if that is allowed. Raise RootsdError."""
    try:
        channel = connect_to_daemon()
    except NotRunning:
        if not start:
            raise
        autostart.start_daemon()
        channel = connect_to_daemon()
    channel.settimeout(_TIMEOUT_S)
    return channel


def _greeting(only: Sequence[str], client: str, *, any_uri: bool) -> hello.Hello | None:
    """Return the hello for these arguments, or None. Raise ValueError for an invalid `only`."""
    greeting = hello.Hello(client=client, scope=parse_scope(only, os.getcwd, any_uri=any_uri))
    return None if greeting == hello.Hello() else greeting


def _greet(channel: socket.socket, greeting: hello.Hello | None) -> None:
    if greeting is not None:
        _welcomed(_exchange(channel, hello.encode_hello(greeting, _HELLO_ID)), greeting)


def _welcomed(answer: Response | ErrorResponse, greeting: hello.Hello) -> hello.Hello:
    """Return the hello for the next connection. Raise RootsdError if the daemon refuses to
    narrow.
    """
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
            with suppress(ValueError):  # a newer daemon may send an unknown code
                error.code = ErrorCode(code)
            raise error
        case answer:
            raise RootsdError(f"the daemon answers {answer!a:.200}", "rootsd status")


def _exchange(channel: socket.socket, request: Request) -> Response | ErrorResponse:
    """Send a request and return its response. Skip notifications. Raise DaemonUnreachable."""
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
        str(meta.get("rootsd/access", "read")),  # without a value, assume less
        tuple(meta.get("rootsd/tags") or ()),
    )
