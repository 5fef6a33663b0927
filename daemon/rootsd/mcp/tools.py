"""The MCP tools list_roots, resolve_root and request_root: their definitions and what they do.

The tools as clients and models see them: titles, descriptions, schemas, annotations.

The input schemas use only what every model API takes: types, properties, descriptions, `required`.
Bounds stand in the descriptions, and the tools take what is out of bounds as it was meant: some
clients check arguments by the schema, and the model would see an error that we cannot explain.

`list_roots` has no output schema, since it returns text alone. Claude Code, Codex, VS Code and
opencode show their model only `structuredContent` if there is any; Gemini CLI, Qwen Code, Open
WebUI and the agent SDKs show only `content`; Copilot shows both. Text alone reaches every model,
once. (anthropics/claude-code#79944, openai/codex#2594, anomalyco/opencode#32074,
github/copilot-cli#4515)
Programs read the list as JSON from `roots://approved` or `roots/list`.

`request_root`: a client asks for a folder, and waits for what the user decides.

The answer tells of roots, and of what the user says to this very request while the call waits.
Whether the folder is there, pending, denied before, or a place that can never be a root makes no
difference to it, nor to the time it takes.

What the tools do. None of them approves anything, and none says why a folder is not approved.

A folder that is pending, denied or unknown looks the same from here: outside.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
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

from rootsd.core.errors import Busy
from rootsd.core.labels import safe_label
from rootsd.core.model import PublishedRoot, PublishedSet
from rootsd.core.paths import bytes_of, text_of
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

_READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_ROOT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Unique; chosen by the user."},
        "path": {
            "type": ["string", "null"],
            "description": "Absolute path of the folder; null where the root is no folder.",
        },
        "uri": {"type": "string"},
        "kind": {"type": "string", "description": "git, git-worktree, project, uri, …"},
        "access": {
            "type": "string",
            "enum": ["read-write", "read"],
            "description": "read: the user asks that nothing in it be changed.",
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
    "description": "Grows with each change of the approved set, and never goes back.",
}
_CHANGES_SCHEMA: dict[str, Any] = {
    "type": "string",
    "description": "Which approved folders were added or removed since your last call, if any.",
}
DEFAULT_LIST_LIMIT = 100

LIST_ROOTS = Tool(
    name="list_roots",
    title="List approved folders",
    description=(
        "Lists the project folders that the user approved for work in this session, one per line:"
        " name, path, access. Call it before reading or changing files. A folder that is not"
        " listed is not approved. Later, the answer of each of these tools says which folders"
        " were added or removed since your last call."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "List only folders with this text in their name, a tag or the path;"
                " * and ? are wildcards. Leave it out to list all.",
            },
            "limit": {
                "type": "integer",
                "description": f"The most folders to list; {DEFAULT_LIST_LIMIT} if left out.",
            },
        },
    },
    annotations=_READ_ONLY,
)

RESOLVE_ROOT = Tool(
    name="resolve_root",
    title="Find an approved folder",
    description=(
        "Finds one approved folder by its name, or tells whether a path lies inside one and"
        " inside which. Give the name, or the path, or the name and a path relative to that"
        " folder. Symbolic links are followed: if one leads out of a folder, the path is not"
        " inside."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of a root, as list_roots shows it."},
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
                "description": "Whether an approved root has that name or holds that path.",
            },
            "root": {**_ROOT_SCHEMA, "type": ["object", "null"]},
            "relative": {
                "type": ["string", "null"],
                "description": "The path seen from the root; '.' for the root itself.",
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
        " list_roots does not show. It approves nothing by itself: the user is told of your"
        " request with its reason, and decides elsewhere. The call waits for a while and then says"
        " how things stand; an approval may come later, and list_roots shows it then."
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
                "description": "What the folder is needed for, in a short sentence for the user.",
            },
            "wait_seconds": {
                "type": "integer",
                "description": "How long to wait for the decision, from 0 to"
                f" {MAX_WAIT_S}; 45 if it is left out.",
            },
        },
        "required": ["path", "reason"],
    },
    output_schema={
        "type": "object",
        "properties": {
            "approved": {
                "type": "boolean",
                "description": "Whether the folder is, or lies in, an approved one now.",
            },
            "denied": {
                "type": "boolean",
                "description": "Whether the user said no to this request while the call waited.",
            },
            "root": {**_ROOT_SCHEMA, "type": ["object", "null"]},
            "revision": _REVISION_SCHEMA,
            "advice": {"type": "string", "description": "What to do now."},
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
TOOLS = (LIST_ROOTS, RESOLVE_ROOT, REQUEST_ROOT)


_APPROVED = "The folder is approved: work in it."
_DENIED = "The user said no. Do not work in the folder, and do not ask for it again."
_NOT_YET = (
    "The folder is not approved in this session. If it can be approved at all, the user has your"
    " request. Do not work in the folder meanwhile; list_roots shows it once it is approved."
)


class ReportProgress(Protocol):
    """How progress is told, where the client asked for it."""

    def __call__(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]: ...


async def request_root(
    arguments: ToolArguments, view: ConnectionView, report: ReportProgress
) -> tuple[JsonObject, PublishedSet]:
    """Return the result of the tool, and the set that it is made from.

    Raises BadArguments, also if the client asked for too many folders of late.
    """
    typed, why = arguments.path(), arguments.text("reason")
    if typed is None or why is None:
        raise arguments.wrong(f"{'reason' if typed else 'path'} is left out")
    reason = safe_label(why, limit=MAX_REASON_LENGTH)
    patience = view.patience
    wait = _parse_wait(arguments, patience.usual_s)
    folder = arguments.absolute(typed)
    _check_rate(view)
    denied = False
    path = await view.source.canonical(folder)
    published = await view.current()
    if (root := root_containing(published, path)) is None:
        try:
            asked = view.source.request(path, view.client, reason, view.member.key)
        except Busy as error:
            raise BadArguments(error.message) from error
        if view.waiting < patience.calls:
            view.waiting += 1
            try:
                published, root = await _wait_for_decision(path, view, asked, wait, report)
            finally:
                view.waiting -= 1
        denied = root is None and asked.is_denied
    found = {
        "approved": root is not None,
        "denied": denied,
        "root": root_to_json(root, view.workspace(published)) if root else None,
        "revision": published.revision,
        "advice": _APPROVED if root else _DENIED if denied else _NOT_YET,
    }
    return found, published


def _parse_wait(arguments: ToolArguments, usual: float) -> float:
    """Return the seconds to wait; a number out of bounds means the nearest that is allowed."""
    wait = arguments.number("wait_seconds")
    return usual if wait is None else min(max(wait, 0.0), MAX_WAIT_S)


async def propose_folder(path: str, reason: str, view: ConnectionView) -> None:
    """Make a folder known to the user that a client has open; no answer says what becomes of it.
    Where too much was asked for of late, it is dropped."""
    if not path.startswith("/") or "\0" in path or view.requests.wait(anyio.current_time()):
        return
    folder = await view.source.canonical(bytes_of(path))
    with suppress(Busy, MCPError):
        if root_containing(await view.current(), folder) is None:
            reason = safe_label(reason, limit=MAX_REASON_LENGTH)
            view.source.request(folder, view.client, reason, None)


def _check_rate(view: ConnectionView) -> None:
    """Every call counts, whatever it asks for: else the count would tell what lies there."""
    if wait := view.requests.wait(anyio.current_time()):
        raise BadArguments(f"too many folders were asked for; ask again in {ceil(wait)} seconds")


async def _wait_for_decision(
    path: bytes,
    view: ConnectionView,
    asked: RootRequestHandle,
    wait: float,
    report: ReportProgress,
) -> tuple[PublishedSet, PublishedRoot | None]:
    """Wait until a root holds `path`, the user has said no, or the time is over; the set as it is
    then."""
    begin = anyio.current_time()
    published = await view.current()
    while (passed := anyio.current_time() - begin) < wait and not asked.is_denied:
        with anyio.move_on_after(min(view.patience.progress_s, wait - passed)) as pause:
            await _wait_for_change(view, asked, published.revision)
            published = await view.current()
            if root := root_containing(published, path):
                return published, root
        if pause.cancelled_caught:
            passed = min(wait, anyio.current_time() - begin)
            await report(passed, wait, "waiting for the user to decide")
    published = await view.current()
    return published, root_containing(published, path)


async def _wait_for_change(view: ConnectionView, asked: RootRequestHandle, revision: int) -> None:
    """Wait until the set is newer than `revision`, or the user has said no."""
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_on_denial, asked, group.cancel_scope)
        await view.source.wait_past(
            revision
        )  # not verified here: that raises, which a group wraps
        group.cancel_scope.cancel()


async def _cancel_on_denial(asked: RootRequestHandle, waiting: anyio.CancelScope) -> None:
    await asked.denial()
    waiting.cancel()


_NO_ROOTS = "No folder is approved in this session. Ask the user for one with request_root."
_WILDCARDS = frozenset("*?[")
_MAX_WILDCARDS = 8
_MAX_QUERY_LENGTH = 200


async def list_tools(_: HandlerContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    """Return all tools on one page; the list never changes."""
    reject_cursor(params.cursor if params else None)
    return ListToolsResult(tools=list(TOOLS))


async def call_tool(ctx: HandlerContext, params: CallToolRequestParams) -> CallToolResult:
    """Call a tool. Raises MCPError for a tool that there is not.

    Wrong arguments are a result with `isError` (MCP, "Tool errors"): models read that, and only
    hosts read protocol errors.
    """
    view = ctx.lifespan_context
    try:
        match params.name:
            case LIST_ROOTS.name:
                return await _list_roots(
                    ToolArguments(params.arguments, {"query": "api", "limit": 20}), view
                )
            case RESOLVE_ROOT.name:
                example = {"path": "/home/you/src/api/main.py"}
                return await _resolve_root(ToolArguments(params.arguments, example), view)
            case REQUEST_ROOT.name:
                example = {"path": "/home/you/src/api", "reason": "to fix its tests"}
                arguments = ToolArguments(params.arguments, example)
                found, published = await request_root(arguments, view, ctx.session.report_progress)
                return _structured_result(found, view.changes_in(published))
            case _:
                names = ", ".join(tool.name for tool in TOOLS)
                raise MCPError(
                    INVALID_PARAMS,
                    f"there is no tool called {safe_label(params.name)}",
                    {"reason": f"the tools are {names}"},
                )
    except BadArguments as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


async def _list_roots(arguments: ToolArguments, view: ConnectionView) -> CallToolResult:
    query, limit = arguments.text("query"), _parse_limit(arguments)
    fits = None if query is None else _query_filter(query, arguments)
    published = await view.current()
    roots = published.roots if fits is None else tuple(filter(fits, published.roots))
    lines = [view.changes_in(published), _list_heading(roots, published, query, limit)]
    here = view.workspace(published)
    roots = tuple(sorted(roots, key=lambda root: root.path not in here))
    lines += (root_to_line(root, here) for root in roots[:limit])
    return CallToolResult(content=[TextContent(text="\n".join(filter(None, lines)))])


def _parse_limit(arguments: ToolArguments) -> int | None:
    """Return the most roots to list, None for all; 0 and less are taken for "left out"."""
    number = arguments.number("limit")
    if number is None or number < 1:
        return DEFAULT_LIST_LIMIT
    return None if isinf(number) else int(number)


def _list_heading(
    roots: tuple[PublishedRoot, ...], published: PublishedSet, query: str | None, limit: int | None
) -> str:
    """Return how many roots there are, and how many of them follow."""
    total = len(published.roots)
    if not total:
        return _NO_ROOTS
    folders = "approved folder" if total == 1 else "approved folders"
    found = f"{total} {folders}"
    if query is not None:
        found = f"{len(roots)} of {found} match {quoted(query)}"
    if limit is not None and len(roots) > limit:
        found += f"; the first {limit} follow, a query or a higher limit shows others"
    return found + (":" if roots else ".")


def _query_filter(query: str, arguments: ToolArguments) -> Callable[[PublishedRoot], bool]:
    """Return the test that `list_roots` applies to each root. Raises BadArguments.

    A query with a wildcard has to match a whole name, tag or path, or the end of a path.
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
    """Return what a query looks at; the label as well, which is all that a model was shown."""
    words = (root.name, root_label(root), *root.tags, text_of(root.path))
    return tuple(word.casefold() for word in words)


async def _resolve_root(arguments: ToolArguments, view: ConnectionView) -> CallToolResult:
    """Find a root by its name, or the root that holds a path. Raises BadArguments.

    Models fill in both arguments: an absolute path then decides alone, and a relative one is taken
    as seen from the root of that name. A path stands for a name as well, and a name for a path.
    """
    name, path = arguments.name(), arguments.path()
    if path is None and name is not None and _is_absolute(name):
        name, path = None, name
    if path is None:
        if name is None:
            raise arguments.wrong("name and path are both left out")
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
            raise arguments.wrong(f"{safe_label(path)} is no absolute path, and no name of a root")
        return _resolve_result(root, None, published, view)
    if root is None or not is_folder(root):
        return _resolve_result(None, None, published, view)
    return await _resolve_path(arguments.absolute(f"{text_of(root.path)}/{path}"), view)


async def _resolve_path(path: bytes, view: ConnectionView) -> CallToolResult:
    canonical = await view.source.canonical(path)
    published = await view.current()  # after the look at the disk, so that it is newest
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
    """Return a small result in both forms; each client shows its model one of them, or both."""
    if changes:
        found = {**found, "changes": changes}
    return CallToolResult(
        content=[TextContent(text=compact_json(found))], structured_content=found
    )
