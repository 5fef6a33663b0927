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
import math
import os
import select
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlsplit

from rootsd.core.errors import DaemonUnreachable, RootsdError
from rootsd.link import rpc
from rootsd.link.connect import NotRunning, connect_to_daemon
from rootsd.link.roots_feed import RootsFeed
from rootsd.service import autostart
from rootsd.wire import hello
from rootsd.wire.jsonrpc import (
    INTERNAL_ERROR,
)
from rootsd.wire.requested_scope import parse_scope
from rootsd.wire.roots_subscription import RootsUpdate

if TYPE_CHECKING:
    from mcp_types import ErrorData, ListRootsResult

__all__ = [
    "DaemonUnreachable", "Root", "RootsdError", "is_path_allowed", "list_roots",
    "list_roots_callback", "watch_roots",
]  # fmt: skip

_TIMEOUT_S = 10.0
_GRACE_S = 5.0
_HELLO_ID = 0
_NOTHING: RootsUpdate[Any] = RootsUpdate((), 0, is_known=False)
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "rootsd.client", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Root:
    """An approved root, as programs of others see it. It stays when our own records change."""

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
        return _roots_of(rpc.ask(channel, "roots/list", {}))


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
        found = rpc.ask(channel, "tools/call", params).get("structuredContent") or {}
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
    updates = deque[RootsUpdate[Root]]()
    errors = deque[RootsdError](maxlen=1)
    greeting = _greeting(only, client, any_uri=any_uri)
    feed = RootsFeed(greeting, _roots_of, updates.append, errors.append)
    known: tuple[Root, ...] | None = None
    empty_at = math.inf  # when to yield that nothing is known to be approved
    try:
        while True:
            await _wait(feed, empty_at)
            feed.attend()
            if errors and (known is None or feed.link.is_refused):
                raise errors[0]
            while updates or time.monotonic() >= empty_at:
                update = updates.popleft() if updates else _NOTHING
                if update.is_known or feed.link.connection or update is _NOTHING:
                    empty_at = math.inf
                    if update.roots != known:
                        known = update.roots
                        yield known
                else:
                    empty_at = time.monotonic() + _GRACE_S
    finally:
        feed.close()


async def _wait(feed: RootsFeed[Root], until: float) -> None:
    """Wait until `feed` has something to do, and at most until `until`."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    watched = [*feed.interest()]
    for descriptor, wanted in watched:
        loop.add_reader(descriptor, ready.set)
        if wanted & select.POLLOUT:
            loop.add_writer(descriptor, ready.set)
    left_s = min(feed.deadline, until) - time.monotonic()
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(ready.wait(), None if left_s == math.inf else max(left_s, 0))
    finally:
        for descriptor, _ in watched:
            loop.remove_reader(descriptor)
            loop.remove_writer(descriptor)


def _raw_roots() -> dict[str, Any]:
    with closing(_connect()) as channel:
        return rpc.ask(channel, "roots/list", {})


def _connect() -> socket.socket:
    """Return a connection to the daemon, and start one if that is allowed. Raise RootsdError."""
    try:
        channel = connect_to_daemon()
    except NotRunning:
        autostart.start_daemon()
        channel = connect_to_daemon()
    channel.settimeout(_TIMEOUT_S)
    return channel


def _greeting(only: Sequence[str], client: str, *, any_uri: bool) -> hello.Hello:
    """Return the hello for these arguments. Raise ValueError for an invalid `only`."""
    return hello.Hello(client=client, scope=parse_scope(only, os.getcwd, any_uri=any_uri))


def _greet(channel: socket.socket, greeting: hello.Hello) -> None:
    try:
        rpc.ask(channel, hello.HELLO_METHOD, hello.hello_params(greeting))
    except rpc.DaemonError as error:
        if greeting.scope.narrows:
            raise RootsdError(f"the daemon cannot narrow this: {error}", "rootsd up") from error


def _roots_of(result: object) -> tuple[Root, ...]:
    match result:
        case {"roots": list() as items}:
            return tuple(_root_of(item, item.get("_meta") or {}) for item in items)
        case _:
            return ()


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
