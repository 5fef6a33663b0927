"""What a person adds by hand: a folder that no scan has found, or a URI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from rootsd.app.control.items import items_of
from rootsd.app.control.register import Entry, Order, order, plain
from rootsd.app.deciding.decisions import check_word
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.references import canonical
from rootsd.core.inputs import Rename, Sighted
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor, Parent, ProjectKind
from rootsd.core.paths import bytes_of
from rootsd.core.uris import UriError, checked_uri, looks_like_a_uri
from rootsd.wire.adding import Added, Addition
from rootsd.wire.request import BadRequest


@dataclass(frozen=True, slots=True)
class Adding:
    """Carries out `Addition` requests; the parts are those of `rootsd.app.deciding.decisions`."""

    ledger: Ledger
    real_path: Callable[[str, str], bytes]
    propose: Callable[[bytes], Awaitable[None]]
    parents: Callable[[], Sequence[Parent]]

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Addition, self.add, _order_in),)

    async def add(self, request: Addition, actor: Actor) -> Added:
        """Propose it. Raises BadRequest for what is neither, and what `propose` raises."""
        if request.name is not None:
            check_word(request.name)
        before = self.ledger.catalog
        path = await self.proposed(request)
        if request.name is not None and self._name(path) != request.name:
            await self.ledger.obey([Rename(path, request.name, actor)])
        catalog = self.ledger.catalog
        return Added(
            revision=self.ledger.revision,
            items=items_of(catalog, [catalog.projects[path]], self.parents()),
            is_new=path not in before.projects,
            warnings=[],
        )

    async def proposed(self, request: Addition) -> bytes:
        """The path of the project, once it is in the catalogue. Raises as `add` does."""
        if not looks_like_a_uri(request.what):
            folder = await to_thread.run_sync(canonical, self.real_path, request.what, request.cwd)
            await self.propose(folder)
            return folder
        try:
            uri = bytes_of(checked_uri(request.what))
        except UriError as error:
            shown = safe_label(request.what, limit=200)
            raise BadRequest(f"{shown} cannot be added: {error}", "rootsd add --help") from error
        await self.ledger.observe([Sighted(uri, ProjectKind.URI, None)])
        return uri

    def _name(self, path: bytes) -> str | None:
        return self.ledger.catalog.projects[path].ruling.name


def _order_in(request: Addition) -> Order | None:
    """To propose decides nothing; to name does."""
    return plain(f"add {request.what} --name {request.name}") if request.name else None
