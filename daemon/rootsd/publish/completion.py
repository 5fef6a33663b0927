"""Completion of the names of roots, for the resource template."""

from __future__ import annotations

from collections.abc import Iterable

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ResourceTemplateReference,
)

from rootsd.publish.shapes import ROOT_TEMPLATE, label_of
from rootsd.publish.view import Context
from rootsd.wire.jsonrpc import INVALID_PARAMS

# MCP's limit on the values of one answer.
_MOST = 100


async def complete(ctx: Context, params: CompleteRequestParams) -> CompleteResult:
    """Names that fit what was typed so far. Raises MCPError for all but the template's name."""
    match params.ref:
        case ResourceTemplateReference(uri=uri) if uri == ROOT_TEMPLATE:
            pass
        case _:
            reason = f"only {ROOT_TEMPLATE} can be completed"
            raise MCPError(INVALID_PARAMS, "unknown reference", {"reason": reason})
    if params.argument.name != "name":
        reason = "the template's only variable is name"
        raise MCPError(INVALID_PARAMS, "unknown argument", {"reason": reason})
    published = await ctx.lifespan_context.current()
    fitting = fits(map(label_of, published.roots), params.argument.value)
    return CompleteResult(
        completion=Completion(
            values=fitting[:_MOST], total=len(fitting), has_more=len(fitting) > _MOST
        )
    )


def fits(names: Iterable[str], typed: str) -> list[str]:
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
