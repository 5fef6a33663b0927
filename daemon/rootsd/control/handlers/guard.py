"""Handle guard: show and set the guard mode, and the programs that a person allowed.

Two other requests are only about the caller: a program that is about to hide introduces itself,
and a command for another machine asks whether its caller may decide here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.routes import (
    COMMAND_TEXT_LIMIT,
    RequestContext,
    Result,
    Route,
    plain_command,
    plain_route,
    query_route,
)
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.changes import ChangeVerb
from rootsd.core.errors import CallerRefused
from rootsd.core.guard_setting import Guard
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ActorKind
from rootsd.wire.guard import (
    AllowProgramsRequest,
    DisallowProgramsRequest,
    GuardQuery,
    GuardStatus,
    IntroduceRequest,
    RemoteCommandRequest,
    SetGuardRequest,
)
from rootsd.wire.request import ApplyMode, BadRequest

_MAX_PROGRAMS = 1000


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = GuardHandlers(services)
    return (
        query_route(GuardQuery, handlers.guard),
        plain_route(SetGuardRequest, handlers.set_guard, lambda r: f"guard {r.guard.value}"),
        plain_route(
            AllowProgramsRequest, handlers.allow, lambda r: f"guard allow {' '.join(r.programs)}"
        ),
        plain_route(
            DisallowProgramsRequest,
            handlers.disallow,
            lambda r: f"guard disallow {' '.join(r.programs)}",
        ),
        query_route(IntroduceRequest, handlers.introduce),
        Route(
            RemoteCommandRequest,
            handlers.remote_command,
            lambda request: plain_command(request.command),
            needs_caller=lambda request: request.effect is ApplyMode.DRY_RUN,
        ),
    )


class GuardHandlers(Handlers):
    """Handles requests about the guard."""

    async def guard(self, _: GuardQuery) -> GuardStatus:
        """Return the guard mode."""
        return self._guard_status(self.services.command_guard.guard)

    async def set_guard(self, request: SetGuardRequest, actor: Actor) -> GuardStatus:
        """Set the guard mode. Raises what the store raises."""
        if request.effect is ApplyMode.APPLY:
            await self.services.command_guard.set_guard(request.guard, actor)
        return self._guard_status(request.guard)

    async def allow(self, request: AllowProgramsRequest, actor: Actor) -> GuardStatus:
        """Add programs. Raises BadRequest and what the store raises."""
        allowed = self.services.command_guard.allowed | set(request.programs)
        if len(allowed) > _MAX_PROGRAMS:
            raise BadRequest(f"{_MAX_PROGRAMS} programs are allowed already", "rootsd guard")
        return await self._set_allowed(allowed, actor, ChangeVerb.PROGRAM_ALLOWED, request.effect)

    async def disallow(self, request: DisallowProgramsRequest, actor: Actor) -> GuardStatus:
        """Take programs back. Raises BadRequest if none is allowed, and what the store raises."""
        gone = self.services.command_guard.allowed & set(request.programs)
        if not gone:
            raise BadRequest("this program was not allowed by you", "rootsd guard")
        allowed = self.services.command_guard.allowed - gone
        return await self._set_allowed(
            allowed, actor, ChangeVerb.PROGRAM_DISALLOWED, request.effect
        )

    async def introduce(self, _: IntroduceRequest) -> Result:
        """Return nothing, because the guard has already looked at the caller."""
        return {}

    async def _set_allowed(
        self, allowed: frozenset[str], actor: Actor, verb: ChangeVerb, effect: ApplyMode
    ) -> GuardStatus:
        if effect is ApplyMode.APPLY and allowed != self.services.command_guard.allowed:
            await self.services.command_guard.set_allowed(allowed, actor, verb)
        return self._guard_status(self.services.command_guard.guard)

    async def remote_command(self, request: RemoteCommandRequest, call: RequestContext) -> Result:
        """Return nothing, because the guard has already admitted a command that decides.

        Raises CallerRefused for any other command, if the guard would refuse one that decides:
        the other machine cannot see the caller, and so could not tell an agent from a person.
        """
        if call.actor.kind is ActorKind.CALLER:
            raise CallerRefused(
                "this command is refused: the guard would not let this program decide here",
                "run it yourself, in your own terminal",
            )
        if request.effect is ApplyMode.APPLY:
            command = safe_label(request.command, COMMAND_TEXT_LIMIT)
            await note_plain_commands(self.ledger, [command], call.actor)
        return {}

    def _guard_status(self, guard: Guard) -> GuardStatus:
        return GuardStatus(
            revision=self.ledger.revision,
            guard=guard.value,
            allowed=sorted(self.services.command_guard.allowed),
            last=self.services.command_guard.last,
            warnings=[],
        )
