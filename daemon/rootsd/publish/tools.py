"""The tools: `list_roots` and `resolve_root`. Both only read, and neither says why not.

What is pending, denied or unknown looks the same from here: outside.
"""

from __future__ import annotations

import json
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from rootsd.core.labels import safe_label
from rootsd.core.model import Published, Root
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.scope import holding
from rootsd.publish.shapes import (
    JsonObject,
    item_of,
    label_of,
    listing_of,
    listing_text,
)
from rootsd.publish.view import Context, View
from rootsd.wire.jsonrpc import INVALID_PARAMS

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_ROOT_SCHEMA: JsonObject = {
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
    },
    "required": ["name", "path", "uri", "kind", "access", "tags"],
}
_REVISION_SCHEMA: JsonObject = {
    "type": "integer",
    "description": "Grows with each change of the approved set.",
}

LIST_ROOTS = Tool(
    name="list_roots",
    title="List approved folders",
    description=(
        "Lists every project folder that the user approved for work in this session. Call it"
        " before reading or changing files, and again when told that the list changed. A folder"
        " that is not listed is not approved."
    ),
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    output_schema={
        "type": "object",
        "properties": {
            "roots": {"type": "array", "items": _ROOT_SCHEMA},
            "revision": _REVISION_SCHEMA,
        },
        "required": ["roots", "revision"],
    },
    annotations=_READS,
)

RESOLVE_ROOT = Tool(
    name="resolve_root",
    title="Find an approved folder",
    description=(
        "Finds one approved folder by its name, or tells whether a path lies inside one and"
        " inside which. Give either name or path. Symbolic links are followed: where one leads out"
        " of a folder, the path is not inside."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of a root, as list_roots shows it."},
            "path": {"type": "string", "description": "Absolute path of a file or folder."},
        },
        "additionalProperties": False,
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
        },
        "required": ["inside", "root", "relative", "revision"],
    },
    annotations=_READS,
)


class _BadArguments(Exception):
    """The model can put this right by itself: the message tells how."""


async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
    """Both tools; the list never changes."""
    return ListToolsResult(tools=[LIST_ROOTS, RESOLVE_ROOT])


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Call a tool. Wrong arguments are a result with `isError`, as MCP wants it: models read
    that, and only hosts read protocol errors."""
    arguments = params.arguments or {}
    try:
        match params.name:
            case LIST_ROOTS.name:
                _expect(arguments, allowed=frozenset())
                published = await ctx.lifespan_context.current()
                return _result(listing_of(published), listing_text(published))
            case RESOLVE_ROOT.name:
                _expect(arguments, allowed=frozenset({"name", "path"}))
                found = await _resolve(arguments, ctx.lifespan_context)
                return _result(found, json.dumps(found, ensure_ascii=False))
            case _:
                raise MCPError(
                    INVALID_PARAMS,
                    f"there is no tool called {safe_label(params.name)}",
                    {"reason": "the tools are list_roots and resolve_root"},
                )
    except _BadArguments as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


def _result(structured: JsonObject, text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def _expect(arguments: dict[str, Any], *, allowed: frozenset[str]) -> None:
    if unknown := sorted(arguments.keys() - allowed):
        takes = " or ".join(sorted(allowed)) or "none"
        raise _BadArguments(f"unknown argument {safe_label(unknown[0])}; this tool takes {takes}")


async def _resolve(arguments: dict[str, Any], view: View) -> JsonObject:
    relative = None
    match arguments:
        case {"name": str() as name} if len(arguments) == 1:
            published = await view.current()
            root = _by_name(name, published)
        case {"path": str() as text} if len(arguments) == 1:
            path = await view.source.canonical(_absolute(text))
            published = await view.current()  # after the look at the disk, so that it is newest
            root = holding(published, path)
            if root is not None:
                relative = text_of(path[len(root.path) :].lstrip(b"/")) or "."
        case _:
            raise _BadArguments("give either name or path, as a string")
    return {
        "inside": root is not None,
        "root": item_of(root) if root else None,
        "relative": relative,
        "revision": published.revision,
    }


def _by_name(name: str, published: Published) -> Root | None:
    return next((root for root in published.roots if name in (root.name, label_of(root))), None)


def _absolute(text: str) -> bytes:
    if not text.startswith("/") or "\0" in text:
        raise _BadArguments("give an absolute path, without NUL")
    return bytes_of(text)
