"""Handle give: show copies of files to a program behind the wall."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.routes import COMMAND_TEXT_LIMIT, GuardedCommand, Route, command_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor
from rootsd.core.paths import bytes_of
from rootsd.wire.decisions import ApplyMode
from rootsd.wire.feed import GivenFiles
from rootsd.wire.request import BadRequest
from rootsd.wire.wall import GivenReport, GiveRequest

MAX_FILES = 32


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = GiveHandlers(services)
    return (command_route(GiveRequest, handlers.give, _command),)


class GiveHandlers(Handlers):
    """Handles `GiveRequest`."""

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


def _command(request: GiveRequest) -> GuardedCommand:
    words = shlex.join(("give", *request.paths, "--to", request.id))

    async def preview() -> Sequence[str]:
        return [f"give {safe_label(path, limit=None)}" for path in request.paths[:MAX_FILES]]

    return GuardedCommand(safe_label(words, COMMAND_TEXT_LIMIT), preview)
