"""Handle the requests of wardens: follow a view, and report about the confined program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from rootsd import __version__
from rootsd.control.routes import RequestContext, Result, Route
from rootsd.control.services import ControlServices
from rootsd.control.wardens import ConnectedWarden, WallServices
from rootsd.core.record import to_json
from rootsd.wire.hello import ResumeStateItem
from rootsd.wire.request import BadRequest
from rootsd.wire.requested_scope import RequestedScope, ResumeState
from rootsd.wire.scope import resolve_scope, resume_state
from rootsd.wire.wall import (
    WALL_VERSION,
    ConfineRequest,
    ConfineResult,
    ReportConfinedRequest,
)


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    return WallHandlers(services.wall).routes()


class WallHandlers(Struct, frozen=True):
    """Handles `ConfineRequest` and `ReportConfinedRequest`."""

    services: WallServices

    def routes(self) -> Iterable[Route[Any]]:
        """Return the routes of these handlers."""
        return (
            Route(ConfineRequest, self.confine, lambda _: None),
            Route(ReportConfinedRequest, self.report, lambda _: None),
        )

    async def confine(self, request: ConfineRequest, call: RequestContext) -> Result:
        """Register a confined program for the rest of the connection, and return its view.

        Raises BadRequest for a wrong scope or a second program on the connection, and Busy.
        """
        if call.connection.subscription is not None:
            raise BadRequest("this connection has a confined program already")
        services = self.services
        try:
            scope = await resolve_scope(
                _scope_in(request), services.canonical, services.session_start
            )
        except ValueError as error:
            raise BadRequest(f"the scope cannot be used: {error}") from error
        pid = call.connection.pid
        sessions = await services.sessions_of(pid)
        # Verify the roots, which may have been replaced. Later views need no verification.
        await services.wardens.ledger.current()
        warden = services.wardens.connect(request, scope, sessions, pid)
        call.connection.subscription = warden
        state = resume_state(scope)
        start = None
        if state is not None:
            start = ResumeStateItem(anchor=state.anchor, approvals=state.approvals)
        result = ConfineResult(
            version=WALL_VERSION,
            rootsd=__version__,
            id=warden.entry["id"],
            start=start,
            settings=services.settings(),
            view=await warden.first_view(),
        )
        return to_json(result)

    async def report(self, request: ReportConfinedRequest, call: RequestContext) -> Result:
        """Update the entry of the connection's program. Raises BadRequest if there is none."""
        warden = call.connection.subscription
        if not isinstance(warden, ConnectedWarden):
            raise BadRequest("this connection has no confined program")
        warden.report(request)
        return {}


def _scope_in(request: ConfineRequest) -> RequestedScope:
    """Return the scope of a request. Raises ValueError."""
    start = None
    if request.approvals >= 0:
        start = ResumeState(request.anchor, request.approvals)
    return RequestedScope(
        request.only,
        request.tags,
        request.cwd,
        workspace=request.workspace,
        start=start,
        focus=request.focus,
    )
