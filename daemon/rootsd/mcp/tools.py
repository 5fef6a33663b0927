"""The MCP tools list_roots, resolve_root, and request_root: their definitions and what they do.

A tool is a function that `_tool` registers together with its definition.

No tool approves anything, and none says why a folder is not approved. A folder that is pending,
denied, or unknown looks the same to a client: outside.

The input schemas use only what every model API accepts: types, properties, descriptions, and
`required`. The descriptions state the bounds, and the tools replace values out of bounds by the
nearest allowed ones. Some clients check arguments against the schema, and then the model sees an
error that rootsd cannot explain.

`list_roots` has no output schema, because it returns only text. If a result has
`structuredContent`, Claude Code, Codex, VS Code, and opencode show their model only that. Gemini
CLI, Qwen Code, Open WebUI, and the agent SDKs show only `content`; Copilot shows both. Only text
reaches every model exactly once. (anthropics/claude-code#79944, openai/codex#2594,
anomalyco/opencode#32074, github/copilot-cli#4515)
Programs read the list as JSON from `roots://approved` or `roots/list`.

`request_root` proposes a folder and waits for the user's decision. Its result reports roots, and a
denial of this request while the call waits. Nothing else changes the result or the time it takes:
not whether the folder exists, is pending, was denied before, or can never be a root.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fnmatch import translate
from math import ceil, isinf
from re import compile as compiled
from typing import Any, Protocol

import anyio
from mcp import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from msgspec import Struct

from rootsd.core.errors import Busy
from rootsd.core.labels import safe_label
from rootsd.core.model import PublishedRoot, PublishedSet
from rootsd.core.paths import text_of
from rootsd.core.scope import is_folder, root_containing
from rootsd.core.uris import looks_like_uri
from rootsd.mcp.arguments import BadArguments, ToolArguments
from rootsd.mcp.paging import reject_cursor
from rootsd.mcp.serializers import (
    JsonObject,
    compact_json,
    quoted,
    root_by_name,
    root_label,
    root_to_json,
    root_to_line,
)
from rootsd.mcp.source import RootRequestHandle
from rootsd.mcp.views import ConnectionView, HandlerContext
from rootsd.wire.jsonrpc import INVALID_PARAMS


class ReportProgress(Protocol):
    """The function that reports progress to a client that asked for it."""

    def __call__(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]: ...


class ToolCall(Struct, frozen=True):
    """A call of a tool on a connection, with the arguments that the client sent."""

    arguments: ToolArguments
    view: ConnectionView
    report: ReportProgress


ToolFunction = Callable[[ToolCall], Awaitable[CallToolResult]]


class _RegisteredTool(Struct, frozen=True):
    definition: Tool
    example: JsonObject
    function: ToolFunction


_registered: dict[str, _RegisteredTool] = {}


def _tool(definition: Tool, example: JsonObject) -> Callable[[ToolFunction], ToolFunction]:
    """Register the function that answers the calls of a tool.

    `example` has correct arguments, which errors show. The function raises BadArguments for wrong
    arguments.
    """

    def register(function: ToolFunction) -> ToolFunction:
        _registered[definition.name] = _RegisteredTool(definition, example, function)
        return function

    return register


def all_tools() -> list[Tool]:
    """Return the definitions of all tools."""
    return [tool.definition for tool in _registered.values()]


_READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_ROOT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Unique; chosen by the user."},
        "path": {
            "type": ["string", "null"],
            "description": "Absolute path of the folder; null if the root is not a folder.",
        },
        "uri": {"type": "string"},
        "kind": {"type": "string", "description": "git, git-worktree, project, uri, …"},
        "access": {
            "type": "string",
            "enum": ["read-write", "read"],
            "description": "read: the user asks you to change nothing in it.",
        },
        "tags": {"type": "array", "items": {"type": "string"}},
        "in_workspace": {
            "type": "boolean",
            "description": "true: the folder belongs to the project that this session works in.",
        },
    },
    "required": ["name", "path", "uri", "kind", "access", "tags"],
}
_REVISION_SCHEMA: dict[str, Any] = {
    "type": "integer",
    "description": "Grows with each change of the approved folders.",
}
_CHANGES_SCHEMA: dict[str, Any] = {
    "type": "string",
    "description": "The approved folders that were added or removed since your last call.",
}
DEFAULT_LIST_LIMIT = 100

LIST_ROOTS = Tool(
    name="list_roots",
    title="List approved folders",
    description=(
        "Lists the project folders that the user approved for work in this session, one per line:"
        " name, path, access. Call it before you read or change files. A folder that is not"
        " listed is not approved. Later, the result of each of these tools says which folders"
        " were added or removed since your last call."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "List only folders with this text in their name, a tag or the path;"
                " * and ? are wildcards. Omit it to list all folders.",
            },
            "limit": {
                "type": "integer",
                "description": f"Maximum number of folders; {DEFAULT_LIST_LIMIT} by default.",
            },
        },
    },
    annotations=_READ_ONLY,
)

RESOLVE_ROOT = Tool(
    name="resolve_root",
    title="Find an approved folder",
    description=(
        "Finds an approved folder by its name, or finds the approved folder that contains a path."
        " Give the name, or the path, or the name and a path relative to that folder. Symbolic"
        " links are followed: if one leads out of a folder, the path is not inside."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of a folder, as list_roots shows it."},
            "path": {
                "type": "string",
                "description": "Absolute path or file:// URI of a file or folder.",
            },
        },
    },
    output_schema={
        "type": "object",
        "properties": {
            "inside": {
                "type": "boolean",
                "description": "Whether an approved folder has this name or contains this path.",
            },
            "root": {**_ROOT_SCHEMA, "type": ["object", "null"]},
            "relative": {
                "type": ["string", "null"],
                "description": "The path relative to the root; '.' for the root itself.",
            },
            "revision": _REVISION_SCHEMA,
            "changes": _CHANGES_SCHEMA,
        },
        "required": ["inside", "root", "relative", "revision"],
    },
    annotations=_READ_ONLY,
)

MAX_WAIT_S = 120
MAX_REASON_LENGTH = 200

REQUEST_ROOT = Tool(
    name="request_root",
    title="Ask for a folder",
    description=(
        "Asks the user to approve one more folder. Call it when the work needs a folder that"
        " list_roots does not show. It approves nothing by itself: the user sees your request"
        " with its reason, and decides elsewhere. The call waits for a while and then returns"
        " the current state. An approval may come later, and list_roots shows it then."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Absolute path or file:// URI of the folder.",
            },
            "reason": {
                "type": "string",
                "description": "Why you need the folder, in a short sentence for the user.",
            },
            "wait_seconds": {
                "type": "integer",
                "description": "How long to wait for the decision, from 0 to"
                f" {MAX_WAIT_S}; 45 by default.",
            },
        },
        "required": ["path", "reason"],
    },
    output_schema={
        "type": "object",
        "properties": {
            "approved": {
                "type": "boolean",
                "description": "Whether the folder is approved now, or is inside an approved one.",
            },
            "denied": {
                "type": "boolean",
                "description": "Whether the user denied this request while the call waited.",
            },
            "root": {**_ROOT_SCHEMA, "type": ["object", "null"]},
            "revision": _REVISION_SCHEMA,
            "advice": {"type": "string", "description": "What to do next."},
            "changes": _CHANGES_SCHEMA,
        },
        "required": ["approved", "denied", "root", "revision", "advice"],
    },
    annotations=ToolAnnotations(
        read_only_hint=False,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    ),
)


_NO_ROOTS = "No folder is approved in this session. Ask the user for one with request_root."
_WILDCARDS = frozenset("*?[")
_MAX_WILDCARDS = 8
_MAX_QUERY_LENGTH = 200


async def list_tools(_: HandlerContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    """Return all tools on one page; the list never changes."""
    reject_cursor(params.cursor if params else None)
    return ListToolsResult(tools=all_tools())


async def call_tool(ctx: HandlerContext, params: CallToolRequestParams) -> CallToolResult:
    """Call a tool. Raises MCPError for an unknown tool.

    Wrong arguments give a result with `isError` (MCP, "Tool errors"): models read results, and
    only hosts read protocol errors.
    """
    tool = _registered.get(params.name)
    if tool is None:
        raise MCPError(
            INVALID_PARAMS,
            f"unknown tool: {safe_label(params.name)}",
            {"reason": f"the tools are {', '.join(_registered)}"},
        )
    arguments = ToolArguments(params.arguments, tool.example)
    call = ToolCall(arguments, ctx.lifespan_context, ctx.session.report_progress)
    try:
        return await tool.function(call)
    except BadArguments as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


@_tool(LIST_ROOTS, {"query": "api", "limit": 20})
async def list_roots(call: ToolCall) -> CallToolResult:
    """List the published roots as text. Raises BadArguments."""
    arguments, view = call.arguments, call.view
    query, limit = arguments.text("query"), _parse_limit(arguments)
    fits = None if query is None else _query_filter(query, arguments)
    published = await view.current()
    roots = published.roots if fits is None else tuple(filter(fits, published.roots))
    lines = [view.changes_in(published), _list_heading(roots, published, query, limit)]
    workspace = view.workspace(published)
    roots = tuple(sorted(roots, key=lambda root: root.path not in workspace))
    lines += (root_to_line(root, workspace) for root in roots[:limit])
    return CallToolResult(content=[TextContent(text="\n".join(filter(None, lines)))])


def _parse_limit(arguments: ToolArguments) -> int | None:
    """Return the maximum number of roots, None for all; 0 and less count as missing."""
    number = arguments.number("limit")
    if number is None or number < 1:
        return DEFAULT_LIST_LIMIT
    return None if isinf(number) else int(number)


def _list_heading(
    roots: tuple[PublishedRoot, ...], published: PublishedSet, query: str | None, limit: int | None
) -> str:
    """Return the line that says how many roots there are, and how many of them follow."""
    total = len(published.roots)
    if not total:
        return _NO_ROOTS
    folders = "approved folder" if total == 1 else "approved folders"
    found = f"{total} {folders}"
    if query is not None:
        found = f"{len(roots)} of {found} match {quoted(query)}"
    if limit is not None and len(roots) > limit:
        found += f"; the first {limit} follow; use a query or a higher limit to see others"
    return found + (":" if roots else ".")


def _query_filter(query: str, arguments: ToolArguments) -> Callable[[PublishedRoot], bool]:
    """Return the predicate that `list_roots` applies to each root. Raises BadArguments.

    A query with a wildcard must match a whole name, tag, or path, or the end of a path.
    """
    text = query.casefold()
    wildcards = sum(char in _WILDCARDS for char in text)
    if len(text) > _MAX_QUERY_LENGTH or wildcards > _MAX_WILDCARDS:
        raise arguments.wrong(
            f"query has more than {_MAX_QUERY_LENGTH} characters or {_MAX_WILDCARDS} wildcards"
        )
    if not wildcards:
        return lambda root: any(text in word for word in _searchable_text(root))
    matches = compiled(translate(text)).match
    below = compiled(translate("*/" + text)).match
    return lambda root: any(matches(word) or below(word) for word in _searchable_text(root))


def _searchable_text(root: PublishedRoot) -> tuple[str, ...]:
    """Return the texts that a query searches. Models see only the label, so it is among them."""
    words = (root.name, root_label(root), *root.tags, text_of(root.path))
    return tuple(word.casefold() for word in words)


@_tool(RESOLVE_ROOT, {"path": "/home/you/src/api/main.py"})
async def resolve_root(call: ToolCall) -> CallToolResult:
    """Find a root by its name, or the root that contains a path. Raises BadArguments.

    Models often give both arguments. Then an absolute path decides alone, and a relative path is
    relative to the root with that name. A name may also stand in `path`, and a path in `name`.
    """
    arguments, view = call.arguments, call.view
    name, path = arguments.name(), arguments.path()
    if path is None and name is not None and _is_absolute(name):
        name, path = None, name
    if path is None:
        if name is None:
            raise arguments.wrong("name and path are both missing")
        published = await view.current()
        return _resolve_result(root_by_name(name, published), None, published, view)
    if not _is_absolute(path):
        return await _resolve_relative(arguments, name, path, view)
    if looks_like_uri(path) and not path.lower().startswith("file:"):
        published = await view.current()
        same = (each for each in published.roots if each.uri == path)
        return _resolve_result(next(same, None), None, published, view)
    return await _resolve_path(arguments.absolute(path), view)


async def _resolve_relative(
    arguments: ToolArguments, name: str | None, path: str, view: ConnectionView
) -> CallToolResult:
    published = await view.current()
    root = root_by_name(path if name is None else name, published)
    if name is None:
        if root is None:
            raise arguments.wrong(
                f"{safe_label(path)} is neither an absolute path nor the name of a root"
            )
        return _resolve_result(root, None, published, view)
    if root is None or not is_folder(root):
        return _resolve_result(None, None, published, view)
    return await _resolve_path(arguments.absolute(f"{text_of(root.path)}/{path}"), view)


async def _resolve_path(path: bytes, view: ConnectionView) -> CallToolResult:
    canonical = await view.source.visible(path)
    published = await view.current()  # only now, so that it is as new as the path
    root = root_containing(published, canonical)
    relative = None
    if root is not None:
        relative = text_of(canonical[len(root.path) :].lstrip(b"/")) or "."
    return _resolve_result(root, relative, published, view)


def _is_absolute(text: str) -> bool:
    return text.startswith("/") or looks_like_uri(text)


def _resolve_result(
    root: PublishedRoot | None, relative: str | None, published: PublishedSet, view: ConnectionView
) -> CallToolResult:
    found = {
        "inside": root is not None,
        "root": root_to_json(root, view.workspace(published)) if root else None,
        "relative": relative,
        "revision": published.revision,
    }
    return _structured_result(found, view.changes_in(published))


def _structured_result(found: JsonObject, changes: str) -> CallToolResult:
    """Return a small result in both forms: clients show their models one of them, or both."""
    if changes:
        found = {**found, "changes": changes}
    return CallToolResult(
        content=[TextContent(text=compact_json(found))], structured_content=found
    )


_APPROVED = "The folder is approved. You can work in it."
_DENIED = "The user said no. Do not work in the folder, and do not request it again."
_NOT_YET = (
    "The folder is not approved in this session. If it can be approved at all, the user has your"
    " request. Do not work in the folder until list_roots shows it."
)


@_tool(REQUEST_ROOT, {"path": "/home/you/src/api", "reason": "to fix its tests"})
async def request_root(call: ToolCall) -> CallToolResult:
    """Propose a folder, and wait for the decision.

    Raises BadArguments, also after too many requests.
    """
    arguments, view = call.arguments, call.view
    typed, why = arguments.path(), arguments.text("reason")
    if typed is None or why is None:
        raise arguments.wrong(f"{'reason' if typed else 'path'} is missing")
    reason = safe_label(why, limit=MAX_REASON_LENGTH)
    limits = view.wait_limits
    wait = _parse_wait(arguments, limits.default_s)
    folder = arguments.absolute(typed)
    _check_rate(view)
    denied = False
    path = await view.source.canonical(folder)
    published = await view.current()
    if (root := root_containing(published, path)) is None:
        try:
            key = view.membership.key
            request = view.source.request(path, view.client, reason, key, key.label)
        except Busy as error:
            raise BadArguments(error.message) from error
        if view.waiting < limits.max_calls:
            view.waiting += 1
            try:
                published, root = await _wait_for_decision(path, view, request, wait, call.report)
            finally:
                view.waiting -= 1
        denied = root is None and request.is_denied
    found = {
        "approved": root is not None,
        "denied": denied,
        "root": root_to_json(root, view.workspace(published)) if root else None,
        "revision": published.revision,
        "advice": _APPROVED if root else _DENIED if denied else _NOT_YET,
    }
    return _structured_result(found, view.changes_in(published))


def _parse_wait(arguments: ToolArguments, default: float) -> float:
    """Return the seconds to wait; a number out of bounds becomes the nearest allowed one."""
    wait = arguments.number("wait_seconds")
    return default if wait is None else min(max(wait, 0.0), MAX_WAIT_S)


def _check_rate(view: ConnectionView) -> None:
    """Raise BadArguments after too many calls.

    Every call counts, for any path: otherwise the limit would reveal facts about the folder.
    """
    if wait := view.request_rate.wait(anyio.current_time()):
        raise BadArguments(f"too many requests for folders; try again in {ceil(wait)} seconds")


async def _wait_for_decision(
    path: bytes,
    view: ConnectionView,
    request: RootRequestHandle,
    wait: float,
    report: ReportProgress,
) -> tuple[PublishedSet, PublishedRoot | None]:
    """Wait until a root contains `path`, the user denies the request, or `wait` seconds are over.

    Return the set at that moment, and the root that contains `path`.
    """
    begin = anyio.current_time()
    published = await view.current()
    while (passed := anyio.current_time() - begin) < wait and not request.is_denied:
        with anyio.move_on_after(min(view.wait_limits.progress_s, wait - passed)) as pause:
            await _wait_for_change(view, request, published.revision)
            published = await view.current()
            if root := root_containing(published, path):
                return published, root
        if pause.cancelled_caught:
            passed = min(wait, anyio.current_time() - begin)
            await report(passed, wait, "waiting for the user to decide")
    published = await view.current()
    return published, root_containing(published, path)


async def _wait_for_change(
    view: ConnectionView, request: RootRequestHandle, revision: int
) -> None:
    """Wait until the set is newer than `revision`, or the user denies the request.

    The caller verifies the set, because an error in here would reach it as an exception group.
    """
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_on_denial, request, group.cancel_scope)
        await view.source.wait_past(revision)
        group.cancel_scope.cancel()


async def _cancel_on_denial(request: RootRequestHandle, waiting: anyio.CancelScope) -> None:
    await request.wait_denied()
    waiting.cancel()
