"""Handle add: propose folders and URIs that no scan found, one or those of a workspace file.

A workspace file may come from anywhere, and is not trusted. Each of its paths is read as if a
person had typed it, and a folder that cannot be proposed is left out, with a warning.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from anyio import to_thread

from rootsd.control.plain_commands import note_plain_commands
from rootsd.control.references import check_name, check_tag
from rootsd.control.routes import GuardedCommand, Route, plain_command, plain_route
from rootsd.control.services import ControlServices, Handlers
from rootsd.core.catalog import Catalog
from rootsd.core.errors import RootsdError
from rootsd.core.inputs import ProjectObserved, Rename, Retag
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor, ProjectKind
from rootsd.core.paths import bytes_of, text_of
from rootsd.core.uris import UriError, looks_like_uri, normalize_uri
from rootsd.wire.decisions import (
    MAX_ADDED_FOLDERS,
    AddFoldersRequest,
    AddRequest,
    AddResult,
    DecideResult,
)
from rootsd.wire.request import ApplyMode, BadRequest

_MAX_INPUT_LENGTH = 4096


def routes(services: ControlServices) -> Iterable[Route[Any]]:
    """Return the routes of this module."""
    handlers = AddHandlers(services)
    return (
        Route(
            AddRequest,
            lambda request, call: handlers.add(request, call.actor),
            _add_command,
            needs_caller=lambda request: request.effect is ApplyMode.APPLY,
        ),
        plain_route(
            AddFoldersRequest,
            handlers.add_folders,
            lambda r: f"add ({len(r.paths)} folders) --tag {r.tag}",
        ),
    )


class AddHandlers(Handlers):
    """Handles `AddRequest` and `AddFoldersRequest`."""

    async def add(self, request: AddRequest, actor: Actor) -> AddResult:
        """Propose a folder or a URI, and name it.

        Raises BadRequest for a word that is neither, and what `propose` raises.
        """
        before = self.ledger.catalog
        target = await self._target(request)
        path = target if isinstance(target, bytes) else target.path
        if request.name is not None:
            check_name(request.name, path, before)
        if request.effect is ApplyMode.DRY_RUN:
            seen = (
                await self.discovery.observe_project(target)
                if isinstance(target, bytes)
                else target
            )
            renames = _rename_orders(request, path, before, actor)
            catalog = self.ledger.dry_run([seen, *renames]).catalog
        else:
            await self._propose(target)
            if path not in before.projects:
                await note_plain_commands(self.ledger, [shlex.join(("add", text_of(path)))], actor)
            if renames := _rename_orders(request, path, self.ledger.catalog, actor):
                await self.ledger.execute(renames)
            catalog = self.ledger.catalog
        return AddResult(
            revision=self.ledger.revision,
            items=self.items(catalog, [catalog.projects[path]]),
            is_new=path not in before.projects,
            warnings=[],
        )

    async def add_folders(self, request: AddFoldersRequest, actor: Actor) -> DecideResult:
        """Propose every folder of the request that can be proposed.

        Raises BadRequest if there are too many, or if its `tag` cannot be one.
        """
        if len(request.paths) > MAX_ADDED_FOLDERS:
            raise BadRequest(f"more than {MAX_ADDED_FOLDERS} folders", "rootsd add --help")
        check_tag(request.tag, self.ledger.catalog)
        added: dict[bytes, None] = {}
        known: dict[bytes, None] = {}
        warnings: list[str] = []
        for typed in request.paths:
            try:
                path = await self._propose_folder(typed, request.effect)
            except RootsdError as error:
                warnings.append(f"{safe_label(typed, limit=200)} is left out: {error.message}")
                continue
            if path is None:
                continue
            if self.ledger.catalog.projects[path].ruling != UNDECIDED:
                known[path] = None
                continue
            added[path] = None
        added = {path: None for path in added if path in self.ledger.catalog.projects}
        # In one order, so that one undo takes all tags back.
        await self.ledger.execute([Retag(path, (request.tag,), (), actor) for path in added])
        catalog = self.ledger.catalog
        return DecideResult(
            revision=self.ledger.revision,
            items=self.items(catalog, (catalog.projects[path] for path in added)),
            unchanged=self.items(catalog, (catalog.projects[path] for path in known)),
            warnings=warnings,
        )

    async def _propose_folder(self, typed: str, effect: ApplyMode) -> bytes | None:
        if len(typed) > _MAX_INPUT_LENGTH or not typed.startswith("/"):
            raise BadRequest("it is not an absolute path")
        if effect is ApplyMode.DRY_RUN:
            return None
        target = await self._target(AddRequest(typed, "/"))
        await self._propose(target)
        return target if isinstance(target, bytes) else target.path

    async def _propose(self, target: bytes | ProjectObserved) -> None:
        if isinstance(target, bytes):
            await self.discovery.propose(target)
        else:
            await self.ledger.observe([target])

    async def _target(self, request: AddRequest) -> bytes | ProjectObserved:
        """Return the folder's canonical path, or an observation of the URI."""
        if looks_like_uri(request.what):
            return _observed_uri(request.what)
        return await to_thread.run_sync(self.canonical, request.what, request.cwd)


def _observed_uri(typed: str) -> ProjectObserved:
    """Return the URI as an observation. Raises BadRequest if it is not valid."""
    try:
        return ProjectObserved(bytes_of(normalize_uri(typed)), ProjectKind.URI, None)
    except UriError as error:
        shown = safe_label(typed, limit=200)
        raise BadRequest(f"{shown} cannot be added: {error}", "rootsd add --help") from error


def _rename_orders(
    request: AddRequest, path: bytes, catalog: Catalog, actor: Actor
) -> list[Rename]:
    project = catalog.projects.get(path)
    known = project.ruling.name if project is not None else None
    if request.name is None or known == request.name:
        return []
    return [Rename(path, request.name, actor)]


def _add_command(request: AddRequest) -> GuardedCommand | None:
    """Return the command to guard. To propose decides nothing, but to name does."""
    if request.name is None:
        return None
    return plain_command(f"add {request.what} --name {request.name}")
