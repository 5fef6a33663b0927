"""The resources `roots://approved` and `roots://root/NAME`, and completion of names.

The resources: `roots://approved`, and one for each root.

Completion of the names of roots, for the resource template.
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

# MCP's own code until 2025-11-25, which 2026-07-28 gave up for "invalid params".
_NOT_FOUND_BEFORE_2026 = -32002

_APPROVED_RESOURCE = Resource(
    uri=APPROVED_URI,
    name="approved",
    title="Approved folders",
    description="Every folder that the user approved, as MCP roots. Subscribe to hear of changes.",
    mime_type=JSON_MEDIA_TYPE,
    annotations=Annotations(audience=["assistant"], priority=1.0),
)
_ROOT_TEMPLATE_RESOURCE = ResourceTemplate(
    uri_template=ROOT_URI_TEMPLATE,
    name="root",
    title="One approved folder",
    description="Path, kind, access and tags of the approved folder with that name.",
    mime_type=JSON_MEDIA_TYPE,
)


async def list_resources(
    ctx: HandlerContext, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """`roots://approved` first, then the roots in name order, in pages."""
    published = await ctx.lifespan_context.current()
    cursor = params.cursor if params else None
    page = page_at(published.roots, cursor)
    first = [_APPROVED_RESOURCE] if cursor is None else []
    return ListResourcesResult(
        resources=[*first, *map(_root_resource, page.roots)], next_cursor=page.following
    )


async def list_templates(
    _: HandlerContext, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """The one template; `+` lets the slash of a name like `acme/api` stand (RFC 6570)."""
    reject_cursor(params.cursor if params else None)
    return ListResourceTemplatesResult(resource_templates=[_ROOT_TEMPLATE_RESOURCE])


async def read_resource(
    ctx: HandlerContext, params: ReadResourceRequestParams
) -> ReadResourceResult:
    """The JSON of one resource. Raises MCPError where there is none."""
    text = await _read_text(params.uri, ctx.lifespan_context)
    if text is None:
        raise _not_found(ctx, params.uri)
    contents = TextResourceContents(uri=params.uri, mime_type=JSON_MEDIA_TYPE, text=text)
    return ReadResourceResult(contents=[contents])


async def subscribe(ctx: HandlerContext, params: SubscribeRequestParams) -> EmptyResult:
    """Subscribe in the handshake era. Only to what is there: that bounds what is remembered."""
    view = ctx.lifespan_context
    view.audience.subscribe(params.uri)  # first: a change while the set is verified must be told
    if await _read_text(params.uri, view) is None:
        view.audience.unsubscribe(params.uri)
        raise _not_found(ctx, params.uri)
    return EmptyResult()


async def unsubscribe(ctx: HandlerContext, params: UnsubscribeRequestParams) -> EmptyResult:
    """End a subscription; one that never was is ended as well."""
    ctx.lifespan_context.audience.unsubscribe(params.uri)
    return EmptyResult()


async def listen(
    ctx: HandlerContext, params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Subscribe in 2026-07-28: the request stays open and its notices carry its id."""
    return await ctx.lifespan_context.audience.listen(ctx, params)


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
    data = {"uri": uri, "reason": "no approved root has that name; list the resources"}
    return MCPError(code, "resource not found", data)


# MCP's limit on the values of one answer.
_MAX_COMPLETIONS = 100


async def complete_name(ctx: HandlerContext, params: CompleteRequestParams) -> CompleteResult:
    """Names that fit what was typed so far. Raises MCPError for all but the template's name."""
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
    fitting = matching_names(map(root_label, published.roots), params.argument.value)
    return CompleteResult(
        completion=Completion(
            values=fitting[:_MAX_COMPLETIONS],
            total=len(fitting),
            has_more=len(fitting) > _MAX_COMPLETIONS,
        )
    )


def matching_names(names: Iterable[str], typed: str) -> list[str]:
    """Names that begin with `typed`, then those with a part that does; letter case aside."""
    typed = typed.casefold()
    begin, inside = [], []
    for name in names:
        folded = name.casefold()
        if folded.startswith(typed):
            begin.append(name)
        elif "/" + typed in folded:
            inside.append(name)
    return begin + inside
