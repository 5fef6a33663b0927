"""Find the session that asked for a folder, for an approval that answers its request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rootsd.core.errors import OrderRefused
from rootsd.core.labels import safe_label
from rootsd.core.model import Project, SessionKey
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb

SessionsByPath = Mapping[bytes, SessionKey]
NO_SESSIONS: SessionsByPath = MappingProxyType({})


class NoRequestingSession(OrderRefused):
    """No running session has asked for a folder that an approval for a session names."""


@dataclass(frozen=True, slots=True)
class SessionRequests:
    """The requests of sessions for folders.

    `asking_for` returns the session that asked for a folder. `hold` starts to watch a session, and
    returns whether it is still running.
    """

    asking_for: Callable[[bytes], SessionKey | None]
    hold: Callable[[SessionKey], Awaitable[bool]]

    async def answered(
        self, request: DecideRequest, projects: tuple[Project, ...]
    ) -> SessionsByPath:
        """Return the running session that an approval of each project is about.

        That is the session that the project is approved for, or else the one that asks for it.
        Raises NoRequestingSession if the request requires a session and there is none.
        """
        if request.verb is not DecisionVerb.APPROVE:
            return NO_SESSIONS
        found: dict[bytes, SessionKey] = {}
        for project in projects:
            key = _bound_to(project) or self.asking_for(project.path)
            if key is not None and await self.hold(key):
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
