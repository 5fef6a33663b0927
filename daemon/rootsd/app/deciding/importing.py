"""Takes in what a file says that was known elsewhere: it waits here, whatever was decided there.

The file is anybody's: a path is looked at as if it had been typed, and a name or a tag that could
not have been typed is left out, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rootsd.app.control.items import items_of
from rootsd.app.control.register import Entry, Order, order, plain
from rootsd.app.deciding.adding import Adding
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.words import check_tag, check_word
from rootsd.core.errors import NameTaken, RootsdError
from rootsd.core.inputs import Rename, Retag
from rootsd.core.labels import safe_label
from rootsd.core.model import UNDECIDED, Actor
from rootsd.core.parents import Parent
from rootsd.core.uris import looks_like_a_uri
from rootsd.wire.adding import Addition
from rootsd.wire.deciding import Decided, Effect
from rootsd.wire.importing import MOST_AT_ONCE, Import
from rootsd.wire.request import BadRequest

_LONGEST_WHAT = 4096


@dataclass(frozen=True, slots=True)
class Importing:
    """Carries out `Import`; a folder is proposed as `adding` does."""

    ledger: Ledger
    adding: Adding
    parents: Callable[[], Sequence[Parent]]

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return (order(Import, self.take_in, _order_in),)

    async def take_in(self, request: Import, actor: Actor) -> Decided:
        """Propose all that can be. Raises BadRequest for a request that is out of shape."""
        count = len(request.whats)
        if not count == len(request.names) == len(request.tags) or count > MOST_AT_ONCE:
            raise BadRequest(
                "an import names each project, its name and its tags", "rootsd import"
            )
        taken: dict[bytes, None] = {}
        known: dict[bytes, None] = {}
        warnings: list[str] = []
        for what, name, tags in zip(request.whats, request.names, request.tags, strict=True):
            shown = safe_label(what, limit=200)
            try:
                path = await self._proposed(what, request.effect)
                if path is None:
                    continue
                if self.ledger.catalog.projects[path].ruling != UNDECIDED:
                    known[path] = None
                    continue
                taken[path] = None
                warnings += await self._labelled(path, name, tags, actor)
            except RootsdError as error:
                warnings.append(f"{shown} is left out: {error.message}")
        catalog, parents = self.ledger.catalog, self.parents()
        return Decided(
            revision=self.ledger.revision,
            items=items_of(catalog, (catalog.projects[path] for path in taken), parents),
            unchanged=items_of(catalog, (catalog.projects[path] for path in known), parents),
            warnings=warnings,
        )

    async def _proposed(self, what: str, effect: Effect) -> bytes | None:
        if len(what) > _LONGEST_WHAT or not (what.startswith("/") or looks_like_a_uri(what)):
            raise BadRequest("it is neither an absolute path nor a URI")
        if effect is Effect.DRY_RUN:
            return None
        return await self.adding.proposed(Addition(what, "/"))

    async def _labelled(self, path: bytes, name: str, tags: str, actor: Actor) -> list[str]:
        """Name and tag it as it was; what cannot be is told."""
        good, warnings = [], []
        for tag in tags.splitlines():
            try:
                check_tag(tag, self.ledger.catalog)
                good.append(tag)
            except BadRequest as error:
                warnings.append(f"a tag is left out: {error.message}")
        if good:
            await self.ledger.obey([Retag(path, tuple(good), (), actor)])
        if name:
            try:
                check_word(name)
                await self.ledger.obey([Rename(path, name, actor)])
            except (BadRequest, NameTaken) as error:
                warnings.append(f"a name is left out: {error.message}")
        return warnings


def _order_in(request: Import) -> Order | None:
    if request.effect is Effect.DRY_RUN:
        return None
    return plain(f"import ({len(request.whats)} projects)")
