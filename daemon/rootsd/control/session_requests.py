"""Find the session that requested a folder, for an approval that answers the request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from rootsd.core.errors import OrderRefused
from rootsd.core.labels import safe_label
from rootsd.core.model import Project, SessionKey
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb

SessionsByPath = Mapping[bytes, SessionKey]
NO_SESSIONS: SessionsByPath = MappingProxyType({})


class NoRequestingSession(OrderRefused):
    """An approval is for one session, but no running session has requested the folder."""


class SessionRequests(Struct, frozen=True):
    """The requests of sessions for folders.

    `session_requesting` returns the session that requested a folder. `track` starts to watch a
    session, and returns whether it still runs.
    """

    session_requesting: Callable[[bytes], SessionKey | None]
    track: Callable[[SessionKey], Awaitable[bool]]

    async def answered(
        self, request: DecideRequest, projects: tuple[Project, ...]
    ) -> SessionsByPath:
        """Return, for each project, the running session that an approval of it is about.

        It is the session that the project is approved for, or else the session that requested it.
        Raises NoRequestingSession if the request requires a session and there is none.
        """
        if request.verb is not DecisionVerb.APPROVE:
            return NO_SESSIONS
        found: dict[bytes, SessionKey] = {}
        for project in projects:
            key = _bound_to(project) or self.session_requesting(project.path)
            if key is not None and await self.track(key):
                found[project.path] = key
            elif request.span is ApprovalScope.SESSION:
                shown = safe_label(project.path, limit=None)
                raise NoRequestingSession(
                    f"no running session asks for {shown}", "rootsd approve REF"
                )
        return found


async def _no_session_runs(_: SessionKey) -> bool:
    return False


NO_SESSION_REQUESTS = SessionRequests(lambda _: None, _no_session_runs)


def _bound_to(project: Project) -> SessionKey | None:
    decision = project.ruling.decision
    return None if decision is None else decision.session
