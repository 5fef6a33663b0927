"""The MCP server: what is offered, in one object that serves every connection and both eras.

It holds no state. What a connection sees comes with the request, as the SDK's "lifespan state".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from rootsd import __version__
from rootsd.core.model import Published
from rootsd.core.scope import Scope
from rootsd.publish import completion, resources, tools
from rootsd.publish.memo import shared
from rootsd.publish.source import RootsSource
from rootsd.publish.view import View

_INSTRUCTIONS = (
    "rootsd tells which project folders the user approved. Call list_roots before you work with"
    " files, and keep to the folders it lists; a folder that is not listed was not approved."
    " Each later answer of a tool says what changed since your last call. This server tells and"
    " does not enforce. The resource roots://approved holds the list as JSON."
)

# Roots are never to be kept: one may be revoked at any moment. The rest is the same for everybody
# until another version of the daemon takes over, behind a bridge without the client's knowing.
_SAME_FOR_ALL = CacheHint(ttl_ms=60_000, scope="public")
_CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    "server/discover": _SAME_FOR_ALL,
    "tools/list": _SAME_FOR_ALL,
    "resources/templates/list": _SAME_FOR_ALL,
}


class _Nobody:
    """The witness where the SDK's own transport serves: it keeps accounts of its own."""

    def named(self, name: str) -> None:
        pass

    def scoped(self, scope: Scope) -> None:
        pass

    def told(self, roots: int, names: tuple[str, ...]) -> None:
        pass

    def given(self, published: Published) -> None:
        pass


@shared(size=1)
def build_server(source: RootsSource) -> Server[View]:
    """The one server over `source`; any of the SDK's transports can serve it."""

    @asynccontextmanager
    async def lifespan(_: Server[View]) -> AsyncIterator[View]:
        yield View(source, _Nobody())

    server = Server(
        "rootsd",
        version=__version__,
        title="rootsd",
        description="The project folders that the user approved",
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read_resource,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
        on_completion=completion.complete,
        cache_hints=_CACHE_HINTS,
    )
    server.middleware.clear()  # it makes spans of OpenTelemetry, which nobody here collects
    return server


def handshake_options(server: Server[View]) -> InitializationOptions:
    """What `initialize` is answered with."""
    return server.create_initialization_options(NotificationOptions(resources_changed=True))
