"""The register of all control requests: which module answers which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rootsd.app.adding import Adding
from rootsd.app.chronicle import Chronicle
from rootsd.app.decisions import Decisions
from rootsd.app.facts import FactsOf, no_facts
from rootsd.app.items import NoteOn, without_note
from rootsd.app.ledger import Ledger
from rootsd.app.projects import Projects
from rootsd.app.references import real_path
from rootsd.app.register import Answer, Call, Entry, Order
from rootsd.app.rules import Rules
from rootsd.app.running import Host, Running
from rootsd.app.scans import Scans, Surveyor
from rootsd.app.standing import Standing
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class Means:
    """What requests are answered with. `note_on` says who asked for a folder; `real_path(typed,
    cwd)` touches the disk: called in a thread."""

    ledger: Ledger
    surveyor: Surveyor
    host: Host
    chronicle: Chronicle
    note_on: NoteOn = without_note
    facts_of: FactsOf = no_facts
    real_path: Callable[[str, str], bytes] = real_path


class Desk:
    """Answers control requests."""

    def __init__(self, means: Means) -> None:
        self._entries: Mapping[type[Request], Entry[Any]] = {
            entry.form: entry for entry in _entries(means)
        }

    @property
    def forms(self) -> AbstractSet[type[Request]]:
        """The kinds of requests that are answered."""
        return self._entries.keys()

    async def answer(self, request: Request, call: Call) -> dict[str, Any]:
        """The answer to `request`. Raises RootsdError."""
        answer: Answer = await self._entries[type(request)].answer(request, call)
        return dict(answer)

    def answered(self, request: Request) -> None:
        """Told once the answer to `request` is out."""
        self._entries[type(request)].afterwards()

    def order_in(self, request: Request) -> Order | None:
        """The order that `request` is; None for what only looks, or changes no decision."""
        return self._entries[type(request)].order_in(request)


def _entries(means: Means) -> tuple[Entry[Any], ...]:
    ledger, parents, found = means.ledger, means.surveyor.parents, means.real_path
    propose = means.surveyor.propose
    return (
        *Running(ledger, means.surveyor, means.host, means.chronicle.standing).entries(),
        *Projects(ledger, found, parents, means.note_on, means.facts_of).entries(),
        *Scans(ledger, means.surveyor, found).entries(),
        *Decisions(ledger, found, propose, parents).entries(),
        *Adding(ledger, found, propose, parents).entries(),
        *Rules(ledger, found, parents).entries(),
        *Standing(ledger, found, parents, means.note_on).entries(),
        *means.chronicle.entries(),
    )
