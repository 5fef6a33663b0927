"""The register of all control requests: which module answers which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rootsd.app.control.examining import Examining
from rootsd.app.control.executed import ExecutedIn, nothing_executed
from rootsd.app.control.facts import FactsOf, no_facts
from rootsd.app.control.items import NoteOn, without_note
from rootsd.app.control.origins import OriginsOf, no_origins
from rootsd.app.control.projects import Projects
from rootsd.app.control.register import WORDS_LIMIT, Answer, Call, Entry, Order
from rootsd.app.control.running import Host, Running
from rootsd.app.control.scans import Scans, Surveyor
from rootsd.app.deciding.adding import Adding
from rootsd.app.deciding.answering import NO_REQUESTS, Requests
from rootsd.app.deciding.choosing import Chooser
from rootsd.app.deciding.chronicle import Chronicle
from rootsd.app.deciding.decisions import Decisions
from rootsd.app.deciding.focusing import Focuser
from rootsd.app.deciding.importing import Importing
from rootsd.app.deciding.ledger import Ledger
from rootsd.app.deciding.naming import Naming
from rootsd.app.deciding.references import never_plain, real_path
from rootsd.app.deciding.rules import Rules
from rootsd.app.deciding.standing import Standing
from rootsd.app.deciding.undoing import Undoing
from rootsd.app.noticing import Noticing
from rootsd.core.labels import safe_label
from rootsd.wire.request import Request


@dataclass(frozen=True, slots=True)
class Means:
    """What requests are answered with. `note_on` says who asked for a folder, and `requests` knows
    for which session; `real_path(typed, cwd)` touches the disk: called in a thread; `is_plain`
    tells at once that a path needs no such call. `state` is the folder of the decisions."""

    ledger: Ledger
    surveyor: Surveyor
    host: Host
    chronicle: Chronicle
    noticing: Noticing
    note_on: NoteOn = without_note
    requests: Requests = NO_REQUESTS
    facts_of: FactsOf = no_facts
    origins_of: OriginsOf = no_origins
    executed_in: ExecutedIn = nothing_executed
    real_path: Callable[[str, str], bytes] = real_path
    is_plain: Callable[[bytes], bool] = never_plain
    state: bytes = b"/"


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

    def asks_who(self, request: Request) -> bool:
        """Whether the answer to `request`, which is no order, depends on who asks."""
        return self._entries[type(request)].asks_who(request)

    def command_in(self, request: Request) -> str:
        """Return the command that is recorded where an agent gives it, safe to show, or ""."""
        command = self._entries[type(request)].command_in(request)
        return safe_label(command, WORDS_LIMIT) if command else ""

    def order_in(self, request: Request) -> Order | None:
        """The order that `request` is; None for what only looks, or changes no decision."""
        return self._entries[type(request)].order_in(request)


def _entries(means: Means) -> tuple[Entry[Any], ...]:
    ledger, parents, found = means.ledger, means.surveyor.parents, means.real_path
    propose, foresee = means.surveyor.propose, means.surveyor.foresee
    adding = Adding(ledger, found, propose, foresee, parents)
    chooser = Chooser(ledger, found, propose, foresee)
    return (
        *Running(ledger, means.surveyor, means.host, means.chronicle.standing).entries(),
        *Examining(ledger, means.surveyor, means.host, means.state).entries(),
        *Projects(
            ledger,
            found,
            parents,
            means.note_on,
            means.facts_of,
            means.origins_of,
            means.surveyor.follow,
        ).entries(),
        *Scans(ledger, means.surveyor, found).entries(),
        *Decisions(
            ledger,
            chooser,
            parents,
            means.requests,
            means.origins_of,
            means.surveyor.follow,
            means.executed_in,
        ).entries(),
        *adding.entries(),
        *Importing(ledger, adding, parents).entries(),
        *Focuser(ledger).entries(),
        *Naming(ledger, found, parents).entries(),
        *Rules(ledger, found, parents).entries(),
        *Standing(ledger, found, parents, means.note_on, means.is_plain).entries(),
        *means.noticing.entries(),
        *means.chronicle.entries(),
        *Undoing(ledger, means.chronicle.gate, means.chronicle.archive, parents).entries(),
    )
