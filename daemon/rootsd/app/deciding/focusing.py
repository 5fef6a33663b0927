"""A person's word on what MCP sessions see of the published set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rootsd.app.control.register import Entry, Order, look, order, plain
from rootsd.app.deciding.ledger import Ledger
from rootsd.core.changes import FocusChange
from rootsd.core.errors import UnknownProject
from rootsd.core.focus import Focus
from rootsd.core.labels import safe_label
from rootsd.core.model import Actor
from rootsd.core.scope import EVERYTHING, focused, narrow
from rootsd.wire.deciding import Effect
from rootsd.wire.focusing import Focusing, FocusQuery, Reach, SetFocus

_MOST_CHOICES = 20


class UnknownTag(UnknownProject):
    """No project has that tag."""


@dataclass(frozen=True, slots=True)
class Focuser:
    """Answers `FocusQuery` and carries out `SetFocus`."""

    ledger: Ledger

    def entries(self) -> Iterable[Entry[Any]]:
        """What is answered here."""
        return look(FocusQuery, self.focus), order(SetFocus, self.set_focus, _order_in)

    async def focus(self, _: FocusQuery) -> Focusing:
        """The focus, and what it leaves."""
        return await self._told(self.ledger.focus.tag)

    async def set_focus(self, request: SetFocus, actor: Actor) -> Focusing:
        """Change it. Raises UnknownTag, and what the store raises."""
        tag = request.tag
        if tag is not None:
            self._check_known(tag)
        is_so = self.ledger.focus.tag == tag and request.reach is Reach.LATER
        if request.effect is Effect.APPLY and not is_so:

            def change(focus: Focus) -> Focus:
                return focus.changed(tag) if request.reach is Reach.LATER else focus.swept_to(tag)

            await self.ledger.refocus(FocusChange(tag, actor), change)
        return await self._told(tag)

    def _check_known(self, tag: str) -> None:
        projects = self.ledger.catalog.projects.values()
        known = {each for project in projects for each in project.ruling.tags}
        if tag not in known:
            told = f"no project has the tag {safe_label(tag)}"
            if known:
                tags = sorted(map(safe_label, known))[:_MOST_CHOICES]
                told += f"; the tags are: {' '.join(tags)}"
            raise UnknownTag(told, "rootsd tag")

    async def _told(self, tag: str | None) -> Focusing:
        published = await self.ledger.current()
        seen = narrow(published, focused(EVERYTHING, tag)).roots
        warnings = []
        if tag is not None and not seen:
            warnings.append(f"no published root is tagged {safe_label(tag)}: sessions see none")
        return Focusing(
            revision=published.revision,
            tag=tag,
            roots=[root.name for root in seen],
            warnings=warnings,
        )


def _order_in(request: SetFocus) -> Order | None:
    if request.effect is Effect.DRY_RUN:
        return None
    what = "--clear" if request.tag is None else request.tag
    return plain(f"focus {what}" + (" --now" if request.reach is Reach.ALL else ""))
