"""Dispatch each control request to the handler that is registered for its type.

Each module in `rootsd.control.handlers` has a function `routes`, which makes its handlers from the
services. This module calls all of them, so a new handler module needs no line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from rootsd.control import handlers
from rootsd.control.routes import (
    COMMAND_TEXT_LIMIT,
    GuardedCommand,
    RequestContext,
    Result,
    Route,
)
from rootsd.control.services import ControlServices
from rootsd.core.labels import safe_label
from rootsd.wire.request import ApplyMode, ControlRequest

# Import the handlers together with this module, before the daemon gives up rights.
_HANDLER_MODULES = tuple(
    import_module(f"{handlers.__name__}.{module.name}")
    for module in iter_modules(handlers.__path__)
)


class Dispatcher:
    """Passes each control request to its handler."""

    def __init__(self, services: ControlServices) -> None:
        self._wardens = services.wall.wardens
        self._routes_by_type: Mapping[type[ControlRequest], Route[Any]] = {
            route.request_type: route for route in all_routes(services)
        }

    async def answer(self, request: ControlRequest, call: RequestContext) -> dict[str, Any]:
        """Return the result of `request`. Raises RootsdError.

        The result of a command comes when the walls have applied it, and warns of those that have
        not.
        """
        answer: Result = await self._routes_by_type[type(request)].answer(request, call)
        result = dict(answer)
        if "warnings" in result and self.guarded_command(request) is not None:
            result["warnings"] = [*result["warnings"], *await self._wardens.catch_up()]
        return result

    def finish(self, request: ControlRequest) -> None:
        """Run the follow-up of `request`, after its response was sent."""
        if (afterwards := self._routes_by_type[type(request)].afterwards) is not None:
            afterwards()

    def needs_caller(self, request: ControlRequest) -> bool:
        """Return whether the handler of the query `request` needs to know the caller."""
        return self._routes_by_type[type(request)].needs_caller(request)

    def recorded_command(self, request: ControlRequest) -> str:
        """Return the command to record if an agent gives it, or an empty text. Safe to print."""
        command = self._routes_by_type[type(request)].recorded_command(request)
        return safe_label(command, COMMAND_TEXT_LIMIT) if command else ""

    def guarded_command(self, request: ControlRequest) -> GuardedCommand | None:
        """Return the command in `request`, or None if the request decides nothing.

        A dry run decides nothing.
        """
        if getattr(request, "effect", None) is ApplyMode.DRY_RUN:
            return None
        return self._routes_by_type[type(request)].guarded_command(request)


def all_routes(services: ControlServices) -> Iterator[Route[Any]]:
    """Yield the route of each request."""
    for module in _HANDLER_MODULES:
        yield from module.routes(services)
    yield from services.more_routes()
