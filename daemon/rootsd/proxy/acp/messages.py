"""Read and change the messages of ACP that are about folders and capabilities. Pure.

Each function that changes a line keeps the bytes of everything else in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from rootsd.core.parsing import parse_json
from rootsd.wire import jsonrpc
from rootsd.wire.jsonrpc import Notification, Request

INITIALIZE, LIST = "initialize", "session/list"
FORK = "session/fork"
SETUPS = frozenset({"session/new", "session/load", "session/resume", FORK})
"""The requests that set the folders of a session."""
RESOURCE_NOT_FOUND = -32002
_FOLDERS = ("params", "additionalDirectories")
_SERVERS = ("params", "mcpServers")
_FOLDER_NAMES = frozenset({"cwd", "additionaldirectories", "additionalroots"})
_PLACE_NAMES = {"path": "path", "cwd": "cwd", "sessionid": "sessionId"}
_OUTSIDE = (("params", "clientCapabilities", "fs"), ("params", "clientCapabilities", "terminal"))
TOOLS = "rootsd"
"""The name of the MCP server with rootsd's own tools."""


_LONG_BYTES = 1 << 16  # shorter lines are always parsed
_LONG_CALL = re.compile(
    rb'\{"jsonrpc": ?"2\.0", ?(?:"id": ?(0|[1-9]\d{0,14}|"[ !#-\[\]-~]{1,64}"), ?)?'
    rb'"method": ?"(session/(?:prompt|update))", ?"params": ?\{'
)
_TELLING_NAME = re.compile(rb'"(?i:(method"|cwd"|additional))')


class ServerWords(NamedTuple):
    """How a session starts MCP servers.

    `tools` is the command of rootsd's own server. `wrapper` is the command in front of the
    session's other servers, or empty. `variables` are set for both.
    """

    tools: tuple[str, ...]
    wrapper: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


def long_call(line: bytes) -> Request | Notification | None:
    """Return a long prompt or update without its params, or None for any other line.

    To parse one of 5 MB takes 10 ms. Here, the beginning of the line says what it is, and nothing
    behind it can say something else: no other member is named `method`, none may name a folder of
    the session, and no name has an escape.
    """
    if len(line) < _LONG_BYTES or (found := _LONG_CALL.match(line)) is None:
        return None
    if not jsonrpc.is_plain_line(line):
        return None
    if [name.lower() for name in _TELLING_NAME.findall(line)] != [b'method"']:
        return None
    id_, method = found[1], found[2].decode()
    return Notification(method) if id_ is None else Request(parse_json(id_), method)


def sets_folders(request: Request | Notification) -> bool:
    """Return whether a request sets the folders of a session, also in a way that is not known."""
    if request.method in SETUPS:
        return True
    if not request.method.startswith("session/") or request.method == LIST:
        return False
    return next(named_folders(request.params), None) is not None


def named_folders(params: object) -> Iterator[object]:
    """Yield each folder that params name for the agent, which is a text if the agent can use it.

    Agents of the Python SDK also read `additional_directories`, and the one for Claude reads
    folders in `_meta`. The folders of MCP servers are their own.
    """
    match params:
        case dict():
            for name, value in params.items():
                if _folded(name) in _FOLDER_NAMES:
                    if value is not None:
                        yield from value if isinstance(value, list) else (value,)
                elif name != "mcpServers":
                    yield from named_folders(value)
        case list():
            for value in params:
                yield from named_folders(value)
        case _:
            pass


def has_look_alikes(params: object) -> bool:
    """Return whether params have a member that some clients take for the path or the session."""
    names = params if isinstance(params, dict) else {}
    return any(_PLACE_NAMES.get(_folded(name), name) != name for name in names)


def _folded(name: str) -> str:
    """Return a name as parsers compare it that ignore its case, or how its words are joined."""
    return name.casefold().replace("_", "")


def without_outside_capabilities(line: bytes) -> bytes:
    """Return `initialize` without the client's files and terminals, which are outside the wall."""
    text = line.decode()
    for way in _OUTSIDE:
        with suppress(KeyError):  # the client declares no capabilities
            text = jsonrpc.remove_member(text, way)
    return text.encode()


def takes_folders(result: object) -> bool:
    """Return whether the answer to `initialize` says that sessions take more folders."""
    match result:
        case {"agentCapabilities": {"sessionCapabilities": {"additionalDirectories": dict()}}}:
            return True
        case _:
            return False


def with_folders(line: bytes, folders: Sequence[str]) -> bytes:
    """Return a request with these `additionalDirectories`."""
    return jsonrpc.set_member(line.decode(), _FOLDERS, json.dumps(folders)).encode()


def with_servers(line: bytes, request: Request, words: ServerWords) -> bytes:
    """Return a request with rootsd's own server, and with its other servers wrapped."""
    params = request.params if isinstance(request.params, dict) else {}
    given = params.get("mcpServers")
    if given is not None and not isinstance(given, list):
        return line  # the agent refuses it
    servers = [_wrapped(each, words) for each in given or ()]
    if all(each.get("name") != TOOLS for each in servers if isinstance(each, dict)):
        program, *arguments = words.tools
        servers.append(_entry(TOOLS, program, arguments, words))
    return jsonrpc.set_member(line.decode(), _SERVERS, json.dumps(servers)).encode()


def _wrapped(server: Any, words: ServerWords) -> Any:  # noqa: ANN401 - a JSON value
    match server:
        case {"name": str(name), "command": str(command), "args": list(arguments)} if (
            words.wrapper and name != TOOLS
        ):
            program, *front = words.wrapper
            inner = [*front, "--name", name, "--", command, *arguments]
            return server | _entry(name, program, inner, words, server.get("env"))
        case _:
            return server


def _entry(
    name: str, program: str, arguments: list[str], words: ServerWords, given: object = None
) -> dict[str, Any]:
    own = [{"name": name, "value": value} for name, value in words.variables]
    variables = [*(given if isinstance(given, list) else ()), *own]
    return {"name": name, "command": program, "args": arguments, "env": variables}


def with_listed(line: bytes, result: object, is_shown: Callable[[str], bool]) -> bytes:
    """Return the answer to `session/list` without the sessions whose folder is not shown."""
    match result:
        case {"sessions": list() as sessions}:
            kept = [each for each in sessions if is_shown(_folder_of(each))]
        case _:
            return line
    if len(kept) == len(sessions):
        return line
    return jsonrpc.set_member(line.decode(), ("result", "sessions"), json.dumps(kept)).encode()


def _folder_of(session: object) -> str:
    match session:
        case {"cwd": str() as folder}:
            return folder
        case _:
            return ""


def text_at(params: object, name: str) -> str | None:
    """Return the text `name` in params, or None."""
    value = params.get(name) if isinstance(params, dict) else None
    return value if isinstance(value, str) else None


def merged(first: Iterable[str], more: Iterable[str]) -> list[str]:
    """Return all texts once, in order."""
    return list(dict.fromkeys((*first, *more)))
