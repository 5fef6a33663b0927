"""The resources `roots://approved` and `roots://root/NAME`, and completion of their names.

`roots://approved` holds all roots, and `roots://root/NAME` describes one of them. The second is a
resource template (RFC 6570), and clients can complete its NAME.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcp import MCPError
from mcp_types import (
    Annotations,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from rootsd.core.model import PublishedRoot
from rootsd.mcp.paging import page_at, reject_cursor
from rootsd.mcp.serializers import (
    APPROVED_URI,
    JSON_MEDIA_TYPE,
    ROOT_URI_TEMPLATE,
    approved_resource_text,
    root_by_uri,
    root_label,
    root_resource_text,
    root_uri,
)
from rootsd.mcp.views import ConnectionView, HandlerContext
from rootsd.wire.jsonrpc import INVALID_PARAMS

# MCP's code for this error until 2025-11-25; 2026-07-28 uses "invalid params" instead.
_NOT_FOUND_BEFORE_2026 = -32002

_APPROVED_RESOURCE = Resource(
    uri=APPROVED_URI,
    name="approved",
    title="Approved folders",
    description="All folders that the user approved, as MCP roots. Subscribe for changes.",
    mime_type=JSON_MEDIA_TYPE,
    annotations=Annotations(audience=["assistant"], priority=1.0),
)
_ROOT_TEMPLATE_RESOURCE = ResourceTemplate(
    uri_template=ROOT_URI_TEMPLATE,
    name="root",
    title="One approved folder",
    description="Path, kind, access, and tags of the approved folder with this name.",
    mime_type=JSON_MEDIA_TYPE,
)


async def list_resources(
    ctx: HandlerContext, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """Return a page of resources: `roots://approved` first, then the roots in name order."""
    published = await ctx.lifespan_context.current()
    cursor = params.cursor if params else None
    page = page_at(published.roots, cursor)
    first = [_APPROVED_RESOURCE] if cursor is None else []
    return ListResourcesResult(
        resources=[*first, *map(_root_resource, page.roots)], next_cursor=page.next_cursor
    )


async def list_templates(
    _: HandlerContext, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """Return the only template. Its `+` keeps the slash of a name like `acme/api` (RFC 6570)."""
    reject_cursor(params.cursor if params else None)
    return ListResourceTemplatesResult(resource_templates=[_ROOT_TEMPLATE_RESOURCE])


async def read_resource(
    ctx: HandlerContext, params: ReadResourceRequestParams
) -> ReadResourceResult:
    """Return the JSON of one resource. Raises MCPError if there is no such resource."""
    text = await _read_text(params.uri, ctx.lifespan_context)
    if text is None:
        raise _not_found(ctx, params.uri)
    contents = TextResourceContents(uri=params.uri, mime_type=JSON_MEDIA_TYPE, text=text)
    return ReadResourceResult(contents=[contents])


async def subscribe(ctx: HandlerContext, params: SubscribeRequestParams) -> EmptyResult:
    """Subscribe to a resource (before MCP 2026-07-28). Raises MCPError for an unknown one.

    Unknown resources are refused so that the number of subscriptions is bounded.
    """
    view = ctx.lifespan_context
    # Subscribe first, so that the client is notified of a change during the verification below.
    view.subscribers.subscribe(params.uri)
    if await _read_text(params.uri, view) is None:
        view.subscribers.unsubscribe(params.uri)
        raise _not_found(ctx, params.uri)
    return EmptyResult()


async def unsubscribe(ctx: HandlerContext, params: UnsubscribeRequestParams) -> EmptyResult:
    """End a subscription. It is no error if there was none."""
    ctx.lifespan_context.subscribers.unsubscribe(params.uri)
    return EmptyResult()


async def listen(
    ctx: HandlerContext, params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Subscribe (MCP 2026-07-28): the request stays open, and notifications carry its id."""
    return await ctx.lifespan_context.subscribers.listen(ctx, params)


def _root_resource(root: PublishedRoot) -> Resource:
    label = root_label(root)
    return Resource(
        uri=root_uri(root.name),
        name=label,
        title=label,
        description=f"{root.kind.value}, {root.access.value}: {root.uri}",
        mime_type=JSON_MEDIA_TYPE,
    )


async def _read_text(uri: str, view: ConnectionView) -> str | None:
    published = await view.current()
    if uri == APPROVED_URI:
        return approved_resource_text(published, view.uris, view.workspace(published))
    root = root_by_uri(uri, published)
    return root_resource_text(root) if root else None


def _not_found(ctx: HandlerContext, uri: str) -> MCPError:
    handshake = ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    code = _NOT_FOUND_BEFORE_2026 if handshake else INVALID_PARAMS
    data = {"uri": uri, "reason": "no approved root has this name; list the resources"}
    return MCPError(code, "resource not found", data)


# MCP's limit on the values of one result.
_MAX_COMPLETIONS = 100


async def complete_name(ctx: HandlerContext, params: CompleteRequestParams) -> CompleteResult:
    """Return the names that match the typed text. Raises MCPError for other arguments."""
    match params.ref:
        case ResourceTemplateReference(uri=uri) if uri == ROOT_URI_TEMPLATE:
            pass
        case _:
            reason = f"only {ROOT_URI_TEMPLATE} can be completed"
            raise MCPError(INVALID_PARAMS, "unknown reference", {"reason": reason})
    if params.argument.name != "name":
        reason = "the template's only variable is name"
        raise MCPError(INVALID_PARAMS, "unknown argument", {"reason": reason})
    published = await ctx.lifespan_context.current()
    matches = matching_names(map(root_label, published.roots), params.argument.value)
    return CompleteResult(
        completion=Completion(
            values=matches[:_MAX_COMPLETIONS],
            total=len(matches),
            has_more=len(matches) > _MAX_COMPLETIONS,
        )
    )


def matching_names(names: Iterable[str], typed: str) -> list[str]:
    """Return the names that begin with `typed`, then those with a later part that does.

    Case is ignored.
    """
    typed = typed.casefold()
    begin, inside = [], []
    for name in names:
        folded = name.casefold()
        if folded.startswith(typed):
            begin.append(name)
        elif "/" + typed in folded:
            inside.append(name)
    return begin + inside
