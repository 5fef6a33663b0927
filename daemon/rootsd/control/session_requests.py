"""Find the session that an approval is for: one that requested the folder, or a wall."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from rootsd.core.errors import ErrorCode, OrderRefused
from rootsd.core.labels import safe_label
from rootsd.core.model import Project, SessionKey
from rootsd.core.session_keys import handle_of
from rootsd.wire.decisions import ApprovalScope, DecideRequest, DecisionVerb

SessionsByPath = Mapping[bytes, SessionKey]
NO_SESSIONS: SessionsByPath = MappingProxyType({})


class NoRequestingSession(OrderRefused):
    """An approval is for one session, but no running session has requested the folder."""


class SeveralSessionsAsk(OrderRefused):
    """Several sessions request the folder, and the approval does not say which one gets it."""

    code = ErrorCode.AMBIGUOUS


class SessionRequests(Struct, frozen=True):
    """The requests of sessions for folders.

    `sessions_requesting` returns the sessions that request a folder. `track` starts to watch a
    session, and returns whether it still runs. `walls` returns the sessions of all walls: a person
    may approve a folder for one of them by its process, also if nobody requests it.
    """

    sessions_requesting: Callable[[bytes], Sequence[SessionKey]]
    track: Callable[[SessionKey], Awaitable[bool]]
    walls: Callable[[], Sequence[SessionKey]] = tuple

    async def answered(
        self, request: DecideRequest, projects: tuple[Project, ...]
    ) -> SessionsByPath:
        """Return, for each project, the running session that an approval of it is about.

        It is the session that the project is approved for, or else the session that requests it.
        Raises NoRequestingSession if the request requires a session and there is none, and
        SeveralSessionsAsk if it does not say which one of them gets the folder.
        """
        if request.verb is not DecisionVerb.APPROVE:
            return NO_SESSIONS
        found: dict[bytes, SessionKey] = {}
        is_for_all = request.span is ApprovalScope.ALWAYS or request.lasts is not None
        for project in projects:
            shown = safe_label(project.path, limit=None)
            bound = _bound_to(project)
            asking = self.sessions_requesting(project.path) if bound is None else (bound,)
            if request.session is not None:
                every = dict.fromkeys((*asking, *self.walls()))
                asking = [key for key in every if handle_of(key) == request.session]
            keys = [key for key in asking if await self.track(key)]
            if len(keys) > 1 and not is_for_all:
                raise _several_ask(shown, keys)
            if keys:
                found[project.path] = keys[0]
            elif request.session is not None or request.span is ApprovalScope.SESSION:
                which = f"session {request.session}" if request.session else "session"
                raise NoRequestingSession(
                    f"no running {which} asks for {shown}", f"rootsd approve {shown}"
                )
        return found


def _several_ask(shown: str, keys: Sequence[SessionKey]) -> SeveralSessionsAsk:
    names = ", ".join(f"{handle_of(key)} ({key.label})" for key in keys)
    return SeveralSessionsAsk(
        f"{len(keys)} sessions ask for {shown}: {names}",
        f"rootsd approve {shown} --session-of {handle_of(keys[0])}, or with --always",
    )


def _bound_to(project: Project) -> SessionKey | None:
    decision = project.ruling.decision
    return None if decision is None else decision.session
