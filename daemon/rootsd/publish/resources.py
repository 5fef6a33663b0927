"""The resources: `roots://approved`, and one for each root."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import (
    Annotations,
    EmptyResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from rootsd.core.model import Root
from rootsd.publish.paging import page_of, whole
from rootsd.publish.shapes import (
    APPROVED_URI,
    JSON_TYPE,
    ROOT_TEMPLATE,
    approved_text,
    label_of,
    root_named_by,
    root_text,
    root_uri,
)
from rootsd.publish.view import Context, View
from rootsd.wire.jsonrpc import INVALID_PARAMS

# MCP's own code until 2025-11-25, which 2026-07-28 gave up for "invalid params".
_NOT_FOUND_BEFORE_2026 = -32002

_APPROVED = Resource(
    uri=APPROVED_URI,
    name="approved",
    title="Approved folders",
    description="Every folder that the user approved, as MCP roots. Subscribe to hear of changes.",
    mime_type=JSON_TYPE,
    annotations=Annotations(audience=["assistant"], priority=1.0),
)
_TEMPLATE = ResourceTemplate(
    uri_template=ROOT_TEMPLATE,
    name="root",
    title="One approved folder",
    description="Path, kind, access and tags of the approved folder with that name.",
    mime_type=JSON_TYPE,
)


async def list_resources(
    ctx: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """`roots://approved` first, then the roots in name order, in pages."""
    published = await ctx.lifespan_context.current()
    cursor = params.cursor if params else None
    page = page_of(published.roots, cursor)
    first = [_APPROVED] if cursor is None else []
    return ListResourcesResult(
        resources=[*first, *map(_resource_of, page.roots)], next_cursor=page.following
    )


async def list_templates(
    _: Context, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """The one template; `+` lets the slash of a name like `acme/api` stand (RFC 6570)."""
    whole(params.cursor if params else None)
    return ListResourceTemplatesResult(resource_templates=[_TEMPLATE])


async def read_resource(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    """The JSON of one resource. Raises MCPError where there is none."""
    text = await _text_of(params.uri, ctx.lifespan_context)
    if text is None:
        raise _not_found(ctx, params.uri)
    contents = TextResourceContents(uri=params.uri, mime_type=JSON_TYPE, text=text)
    return ReadResourceResult(contents=[contents])


async def subscribe(ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
    """Subscribe in the handshake era. Only to what is there: that bounds what is remembered."""
    view = ctx.lifespan_context
    view.audience.subscribe(params.uri)  # first: a change while the set is verified must be told
    if await _text_of(params.uri, view) is None:
        view.audience.unsubscribe(params.uri)
        raise _not_found(ctx, params.uri)
    return EmptyResult()


async def unsubscribe(ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
    """End a subscription; one that never was is ended as well."""
    ctx.lifespan_context.audience.unsubscribe(params.uri)
    return EmptyResult()


async def listen(
    ctx: Context, params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Subscribe in 2026-07-28: the request stays open and its notices carry its id."""
    return await ctx.lifespan_context.audience.listen(ctx, params)


def _resource_of(root: Root) -> Resource:
    label = label_of(root)
    return Resource(
        uri=root_uri(root.name),
        name=label,
        title=label,
        description=f"{root.kind.value}, {root.access.value}: {root.uri}",
        mime_type=JSON_TYPE,
    )


async def _text_of(uri: str, view: View) -> str | None:
    published = await view.current()
    if uri == APPROVED_URI:
        return approved_text(published, view.uris, view.workspace(published))
    root = root_named_by(uri, published)
    return root_text(root) if root else None


def _not_found(ctx: Context, uri: str) -> MCPError:
    handshake = ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    code = _NOT_FOUND_BEFORE_2026 if handshake else INVALID_PARAMS
    data = {"uri": uri, "reason": "no approved root has that name; list the resources"}
    return MCPError(code, "resource not found", data)
