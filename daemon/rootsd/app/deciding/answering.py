"""What an approval answers: the request of a session for a folder, or nobody.

A session that asked gets what it needs and no more. Where the person does not say otherwise, the
approval is for that session alone and for reading.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rootsd.core.errors import OrderRefused
from rootsd.core.labels import safe_label
from rootsd.core.model import Access, Project, SessionKey, Verdict
from rootsd.wire.deciding import Decide, DecisionVerb, Span

Sessions = Mapping[bytes, SessionKey]
NO_SESSIONS: Sessions = MappingProxyType({})


class NobodyAsks(OrderRefused):
    """An approval for a session, where no session that runs has asked."""


@dataclass(frozen=True, slots=True)
class Requests:
    """`asking_for` tells which session has asked for a folder; `hold` watches a session, and tells
    whether it goes on."""

    asking_for: Callable[[bytes], SessionKey | None]
    hold: Callable[[SessionKey], Awaitable[bool]]

    async def answered(self, request: Decide, projects: tuple[Project, ...]) -> Sessions:
        """Return the running session that an approval of each project is about: the one that the
        project is approved for, or else the one that asks for it. Raises NobodyAsks."""
        if request.verb is not DecisionVerb.APPROVE:
            return NO_SESSIONS
        found: dict[bytes, SessionKey] = {}
        for project in projects:
            key = _bound_to(project) or self.asking_for(project.path)
            if key is not None and await self.hold(key):
                found[project.path] = key
            elif request.span is Span.SESSION:
                shown = safe_label(project.path, limit=None)
                raise NobodyAsks(f"no session that runs asks for {shown}", "rootsd approve REF")
        return found


async def _nothing_runs(_: SessionKey) -> bool:
    return False


NO_REQUESTS = Requests(lambda _: None, _nothing_runs)


def session_for(request: Decide, key: SessionKey | None) -> SessionKey | None:
    """Return the session that the approval is for alone; None for all. An approval with an end in
    time is for all until then."""
    is_for_all = request.span is Span.ALWAYS or request.lasts is not None
    return None if is_for_all else key


def access_for(request: Decide, project: Project, key: SessionKey | None) -> Access:
    """Return the access that the approval gives. Where the person does not say, an approval that
    stands keeps its access."""
    if request.access is not None:
        return request.access
    decision = project.ruling.decision
    stands = decision is not None and decision.verdict is Verdict.APPROVED
    if decision is not None and stands and decision.session in (None, key):
        return decision.access
    return Access.READ_WRITE if key is None else Access.READ


def _bound_to(project: Project) -> SessionKey | None:
    decision = project.ruling.decision
    return None if decision is None else decision.session
