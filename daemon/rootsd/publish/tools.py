"""What the tools do. None of them approves anything, and none says why not.

What is pending, denied or unknown looks the same from here: outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from rootsd.core.labels import safe_label
from rootsd.core.model import Published
from rootsd.core.paths import text_of
from rootsd.core.scope import holding
from rootsd.publish import arguments as given
from rootsd.publish.arguments import BadArguments
from rootsd.publish.memo import shared
from rootsd.publish.offers import LIST_ROOTS, REQUEST_ROOT, RESOLVE_ROOT, TOOLS
from rootsd.publish.paging import whole
from rootsd.publish.shapes import (
    JsonObject,
    compact,
    item_of,
    listing_of,
    listing_text,
    root_called,
)
from rootsd.publish.view import Context, View
from rootsd.publish.wishes import request_root
from rootsd.wire.jsonrpc import INVALID_PARAMS


async def list_tools(_: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """All tools, on one page; the list never changes."""
    whole(params.cursor if params else None)
    return ListToolsResult(tools=list(TOOLS))


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult | JsonObject:
    """Call a tool. Wrong arguments are a result with `isError`, as MCP wants it: models read
    that, and only hosts read protocol errors."""
    arguments = params.arguments or {}
    try:
        match params.name:
            case LIST_ROOTS.name:
                given.expect(arguments)
                return _listing(await ctx.lifespan_context.current())
            case RESOLVE_ROOT.name:
                found = await _resolve(arguments, ctx.lifespan_context)
            case REQUEST_ROOT.name:
                report = ctx.session.report_progress
                found = await request_root(arguments, ctx.lifespan_context, report)
            case _:
                names = ", ".join(tool.name for tool in TOOLS)
                raise MCPError(
                    INVALID_PARAMS,
                    f"there is no tool called {safe_label(params.name)}",
                    {"reason": f"the tools are {names}"},
                )
    except BadArguments as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
    return _result(found, compact(found))


@shared(size=4)
def _listing(published: Published) -> JsonObject:
    """The result of `list_roots`, as JSON: with thousands of roots, turning it into that costs
    more than the rest of a call. The SDK copies what it changes."""
    result = _result(listing_of(published), listing_text(published))
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _result(structured: JsonObject, text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


async def _resolve(arguments: Mapping[str, Any], view: View) -> JsonObject:
    given.expect(arguments, "name", "path")
    if len(arguments) != 1:
        raise BadArguments("give either name or path, as a string")
    relative = None
    if "name" in arguments:
        published = await view.current()
        root = root_called(given.text(arguments, "name"), published)
    else:
        path = await view.source.canonical(given.path(arguments))
        published = await view.current()  # after the look at the disk, so that it is newest
        root = holding(published, path)
        if root is not None:
            relative = text_of(path[len(root.path) :].lstrip(b"/")) or "."
    return {
        "inside": root is not None,
        "root": item_of(root) if root else None,
        "relative": relative,
        "revision": published.revision,
    }
