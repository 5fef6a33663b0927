"""What a person adds by hand: a folder that no scan has found, or a URI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from rootsd.app.control.items import items_of
from rootsd.app.control.register import Entry, Order, order, plain
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.references import canonical
from rootsd.app.deciding.words import check_name
from rootsd.core.catalog import Catalog
from rootsd.core.inputs import Rename, Sighted
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, ProjectKind
from rootsd.core.parents import Parent
from rootsd.core.paths import bytes_of
from rootsd.core.uris import UriError, checked_uri, looks_like_a_uri
from rootsd.wire.adding import Added, Addition
from rootsd.wire.deciding import Effect
from rootsd.wire.request import BadRequest


@dataclass(frozen=True, slots=True)
class Adding:
    """Carries out `Addition` requests; the parts are those of `rootsd.app.deciding.choosing`.

    `foresee` looks as `propose` does and takes nothing in.
    """

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    propose: Callable[[bytes], Awaitable[None]]
    foresee: Callable[[bytes], Awaitable[Sighted]]
    parents: Callable[[], Sequence[Parent]]

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Addition, self.add, _order_in),)

    async def add(self, request: Addition, actor: Actor) -> Added:
        """Propose it. Raises BadRequest for what is neither, and what `propose` raises."""
        before = self.ledger.catalog
        if request.name is not None:
            is_uri = looks_like_a_uri(request.what)
            path = _sighted_uri(request.what).path if is_uri else await self._folder(request)
            check_name(request.name, path, before)
        if request.effect is Effect.DRY_RUN:
            path, catalog = await self._rehearsed(request, actor)
        else:
            path = await self.proposed(request)
            await self.ledger.obey(_naming(request, path, self.ledger.catalog, actor))
            catalog = self.ledger.catalog
        return Added(
            revision=self.ledger.revision,
            items=items_of(catalog, [catalog.projects[path]], self.parents()),
            is_new=path not in before.projects,
            warnings=[],
        )

    async def proposed(self, request: Addition) -> bytes:
        """The path of the project, once it is in the catalogue. Raises as `add` does."""
        if looks_like_a_uri(request.what):
            seen = _sighted_uri(request.what)
            await self.ledger.observe([seen])
            return seen.path
        folder = await self._folder(request)
        await self.propose(folder)
        return folder

    async def _rehearsed(self, request: Addition, actor: Actor) -> tuple[bytes, Catalog]:
        if looks_like_a_uri(request.what):
            seen = _sighted_uri(request.what)
        else:
            seen = await self.foresee(await self._folder(request))
        sighted = self.ledger.rehearse([seen]).catalog
        naming = _naming(request, seen.path, sighted, actor)
        return seen.path, self.ledger.rehearse([seen, *naming]).catalog

    async def _folder(self, request: Addition) -> bytes:
        return await to_thread.run_sync(canonical, self.real_path, request.what, request.cwd)


def _sighted_uri(typed: str) -> Sighted:
    """Raises BadRequest for what is none."""
    try:
        return Sighted(bytes_of(checked_uri(typed)), ProjectKind.URI, None)
    except UriError as error:
        shown = safe_label(typed, limit=200)
        raise BadRequest(f"{shown} cannot be added: {error}", "rootsd add --help") from error


def _naming(request: Addition, path: bytes, catalog: Catalog, actor: Actor) -> list[Rename]:
    if request.name is None or catalog.projects[path].ruling.name == request.name:
        return []
    return [Rename(path, request.name, actor)]


def _order_in(request: Addition) -> Order | None:
    """To propose decides nothing; to name does."""
    if request.name is None or request.effect is Effect.DRY_RUN:
        return None
    return plain(f"add {request.what} --name {request.name}")
