"""Handle give and add-to-session: show files or roots to a program behind the wall."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.routes import (
    COMMAND_TEXT_LIMIT,
    GuardedCommand,
    RequestContext,
    Route,
    command_route,
    plain_command,
)
from rootsd.control.services import ControlServices, Handlers
from rootsd.control.wardens import CannotGive, ConnectedWarden
from rootsd.core.errors import UnknownProject
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor
from rootsd.core.paths import bytes_of, text_of
from rootsd.wire.feed import GivenFiles
from rootsd.wire.request import ApplyMode, BadRequest
from rootsd.wire.wall import (
    AddedRootItem,
    AddedRoots,
    AddRootsRequest,
    GivenReport,
    GiveRequest,
)

MAX_FILES = 32


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = GiveHandlers(services)
    return (
        command_route(GiveRequest, handlers.give, _command),
        Route(AddRootsRequest, handlers.add_roots, _command_to_add),
    )


class GiveHandlers(Handlers):
    """Handles `GiveRequest` and `AddRootsRequest`."""

    async def give(self, request: GiveRequest, actor: Actor) -> GivenReport:
        """Show the files. Raises CannotGive and BadRequest."""
        paths = [bytes_of(path) for path in request.paths]
        if not (0 < len(paths) <= MAX_FILES and all(path.startswith(b"/") for path in paths)):
            raise BadRequest(f"give takes 1 to {MAX_FILES} absolute paths")
        warden = self.services.wall.wardens.named(request.id)
        if request.effect is ApplyMode.DRY_RUN:
            return GivenReport(folder=request.folder, problems=[""] * len(paths))
        problems = await warden.give(GivenFiles(request.folder, tuple(paths)))
        shown = [
            path for path, problem in zip(request.paths, problems, strict=False) if not problem
        ]
        if shown:
            command = shlex.join(("give", *shown, "--to", warden.entry["name"]))
            await note_plain_commands(self.ledger, [command], actor)
        return GivenReport(folder=request.folder, problems=problems)

    async def add_roots(self, request: AddRootsRequest, call: RequestContext) -> AddedRoots:
        """Add roots to the scope of programs. Raises CannotGive and UnknownProject."""
        wardens = self.services.wall.wardens
        shown = {each.root.name: each.root.path for each in wardens.roots().roots.values()}
        if unknown := sorted({*request.names} - shown.keys()):
            raise UnknownProject(f"{safe_label(unknown[0])} is no root", "rootsd ls --published")
        if request.id:
            programs: Sequence[ConnectedWarden] = (wardens.named(request.id),)
        else:
            caller = await self.services.wall.sessions_of(call.connection.pid)
            programs = wardens.started_by(caller)
        if not programs:
            raise CannotGive("you started no program behind the wall", "rootsd sessions")
        items = []
        for program in programs:
            result = "would be added"
            if request.effect is ApplyMode.APPLY:
                result = await program.add(request.names) or "added"
            items += [
                AddedRootItem(
                    program=program.entry["name"],
                    name=name,
                    path=text_of(shown[name]),
                    result=result,
                )
                for name in request.names
            ]
        if request.id and request.effect is ApplyMode.APPLY:
            words = ("add-to-session", *request.names, "--to", programs[0].entry["name"])
            await note_plain_commands(self.ledger, [shlex.join(words)], call.actor)
        return AddedRoots(items=items)


def _command_to_add(request: AddRootsRequest) -> GuardedCommand | None:
    """Return the command, or None for a caller that adds roots to what it started itself."""
    if not request.id:
        return None
    return plain_command(shlex.join(("add-to-session", *request.names, "--to", request.id)))


def _command(request: GiveRequest) -> GuardedCommand:
    words = shlex.join(("give", *request.paths, "--to", request.id))

    async def preview() -> Sequence[str]:
        return [f"give {safe_label(path, limit=None)}" for path in request.paths[:MAX_FILES]]

    return GuardedCommand(safe_label(words, COMMAND_TEXT_LIMIT), preview)
