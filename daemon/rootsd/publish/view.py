"""What one connection sees: the published set, and the listeners that it brought along."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from rootsd.core.errors import RootsdError
from rootsd.core.model import Published
from rootsd.publish.audience import Audience
from rootsd.publish.source import RootsSource
from rootsd.wire.jsonrpc import INTERNAL_ERROR


@dataclass(frozen=True, slots=True)
class View:
    """The SDK's "lifespan state" of a connection; every handler reads roots through it alone.

    A scope will narrow the set here and nowhere else, so that no answer can forget it.
    """

    source: RootsSource
    audience: Audience = field(default_factory=Audience)

    async def current(self) -> Published:
        """The set to answer from, verified now. Raises MCPError where the daemon cannot tell."""
        try:
            return await self.source.current()
        except RootsdError as error:
            data = {"reason": error.code.value, "remedy": error.remedy}
            raise MCPError(INTERNAL_ERROR, error.message, data) from error


Context = ServerRequestContext[View, Any]
