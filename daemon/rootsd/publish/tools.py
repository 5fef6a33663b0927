"""What the tools do. None of them approves anything, and none says why a folder is not approved.

A folder that is pending, denied or unknown looks the same from here: outside.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import translate
from math import isinf
from re import compile as compiled

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from rootsd.core.labels import safe_label
from rootsd.core.model import Published, Root
from rootsd.core.paths import text_of
from rootsd.core.scope import holding, is_folder
from rootsd.core.uris import looks_like_a_uri
from rootsd.publish.arguments import Arguments, BadArguments
from rootsd.publish.offers import LIST_ROOTS, REQUEST_ROOT, RESOLVE_ROOT, TOOLS, USUAL_LIMIT
from rootsd.publish.paging import whole
from rootsd.publish.shapes import (
    JsonObject,
    compact,
    item_of,
    label_of,
    line_of,
    quoted,
    root_called,
)
from rootsd.publish.view import Context, View
from rootsd.publish.wishes import request_root
from rootsd.wire.jsonrpc import INVALID_PARAMS

_EMPTY = "No folder is approved in this session. Ask the user for one with request_root."
_WILDCARDS = frozenset("*?[")
_MOST_WILDCARDS = 8
_LONGEST_QUERY = 200


async def list_tools(_: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """Return all tools on one page; the list never changes."""
    whole(params.cursor if params else None)
    return ListToolsResult(tools=list(TOOLS))


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Call a tool. Raises MCPError for a tool that there is not.

    Wrong arguments are a result with `isError` (MCP, "Tool errors"): models read that, and only
    hosts read protocol errors.
    """
    view = ctx.lifespan_context
    try:
        match params.name:
            case LIST_ROOTS.name:
                return await _list(
                    Arguments(params.arguments, {"query": "api", "limit": 20}), view
                )
            case RESOLVE_ROOT.name:
                example = {"path": "/home/you/src/api/main.py"}
                return await _resolve(Arguments(params.arguments, example), view)
            case REQUEST_ROOT.name:
                example = {"path": "/home/you/src/api", "reason": "to fix its tests"}
                arguments = Arguments(params.arguments, example)
                found, published = await request_root(arguments, view, ctx.session.report_progress)
                return _structured(found, view.changes_in(published))
            case _:
                names = ", ".join(tool.name for tool in TOOLS)
                raise MCPError(
                    INVALID_PARAMS,
                    f"there is no tool called {safe_label(params.name)}",
                    {"reason": f"the tools are {names}"},
                )
    except BadArguments as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


async def _list(arguments: Arguments, view: View) -> CallToolResult:
    query, limit = arguments.text("query"), _limit(arguments)
    fits = None if query is None else _fitting(query, arguments)
    published = await view.current()
    roots = published.roots if fits is None else tuple(filter(fits, published.roots))
    lines = [view.changes_in(published), _heading(roots, published, query, limit)]
    here = view.workspace(published)
    roots = tuple(sorted(roots, key=lambda root: root.path not in here))
    lines += (line_of(root, here) for root in roots[:limit])
    return CallToolResult(content=[TextContent(text="\n".join(filter(None, lines)))])


def _limit(arguments: Arguments) -> int | None:
    """Return the most roots to list, None for all; 0 and less are taken for "left out"."""
    number = arguments.number("limit")
    if number is None or number < 1:
        return USUAL_LIMIT
    return None if isinf(number) else int(number)


def _heading(
    roots: tuple[Root, ...], published: Published, query: str | None, limit: int | None
) -> str:
    """Return how many roots there are, and how many of them follow."""
    total = len(published.roots)
    if not total:
        return _EMPTY
    folders = "approved folder" if total == 1 else "approved folders"
    found = f"{total} {folders}"
    if query is not None:
        found = f"{len(roots)} of {found} match {quoted(query)}"
    if limit is not None and len(roots) > limit:
        found += f"; the first {limit} follow, a query or a higher limit shows others"
    return found + (":" if roots else ".")


def _fitting(query: str, arguments: Arguments) -> Callable[[Root], bool]:
    """Return the test that `list_roots` applies to each root. Raises BadArguments.

    A query with a wildcard has to match a whole name, tag or path, or the end of a path.
    """
    text = query.casefold()
    wildcards = sum(char in _WILDCARDS for char in text)
    if len(text) > _LONGEST_QUERY or wildcards > _MOST_WILDCARDS:
        raise arguments.wrong(
            f"query has more than {_LONGEST_QUERY} characters or {_MOST_WILDCARDS} wildcards"
        )
    if not wildcards:
        return lambda root: any(text in word for word in _words(root))
    matches = compiled(translate(text)).match
    below = compiled(translate("*/" + text)).match
    return lambda root: any(matches(word) or below(word) for word in _words(root))


def _words(root: Root) -> tuple[str, ...]:
    """Return what a query looks at; the label as well, which is all that a model was shown."""
    words = (root.name, label_of(root), *root.tags, text_of(root.path))
    return tuple(word.casefold() for word in words)


async def _resolve(arguments: Arguments, view: View) -> CallToolResult:
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
        return _resolved(root_called(name, published), None, published, view)
    if not _is_absolute(path):
        return await _resolve_relative(arguments, name, path, view)
    if looks_like_a_uri(path) and not path.lower().startswith("file:"):
        published = await view.current()
        same = (each for each in published.roots if each.uri == path)
        return _resolved(next(same, None), None, published, view)
    return await _resolve_path(arguments.absolute(path), view)


async def _resolve_relative(
    arguments: Arguments, name: str | None, path: str, view: View
) -> CallToolResult:
    published = await view.current()
    root = root_called(path if name is None else name, published)
    if name is None:
        if root is None:
            raise arguments.wrong(f"{safe_label(path)} is no absolute path, and no name of a root")
        return _resolved(root, None, published, view)
    if root is None or not is_folder(root):
        return _resolved(None, None, published, view)
    return await _resolve_path(arguments.absolute(f"{text_of(root.path)}/{path}"), view)


async def _resolve_path(path: bytes, view: View) -> CallToolResult:
    canonical = await view.source.canonical(path)
    published = await view.current()  # after the look at the disk, so that it is newest
    root = holding(published, canonical)
    relative = None
    if root is not None:
        relative = text_of(canonical[len(root.path) :].lstrip(b"/")) or "."
    return _resolved(root, relative, published, view)


def _is_absolute(text: str) -> bool:
    return text.startswith("/") or looks_like_a_uri(text)


def _resolved(
    root: Root | None, relative: str | None, published: Published, view: View
) -> CallToolResult:
    found = {
        "inside": root is not None,
        "root": item_of(root, view.workspace(published)) if root else None,
        "relative": relative,
        "revision": published.revision,
    }
    return _structured(found, view.changes_in(published))


def _structured(found: JsonObject, changes: str) -> CallToolResult:
    """Return a small result in both forms; each client shows its model one of them, or both."""
    if changes:
        found = {**found, "changes": changes}
    return CallToolResult(content=[TextContent(text=compact(found))], structured_content=found)
