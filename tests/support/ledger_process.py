"""A ledger with a real store and real folders, in its own process that a test can kill.

The process answers each order with one line when it is acknowledged, and with another line that
has the resulting state: the verified published folders, and the stored decisions.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

import anyio

from rootsd.core.catalog import Catalog
from rootsd.core.errors import RootsdError
from rootsd.core.inputs import (
    AddRule,
    Approve,
    ApproveRule,
    Deny,
    Observation,
    Order,
    ProjectObserved,
    RemoveRule,
)
from rootsd.core.model import Identity, ProjectKind, Verdict
from rootsd.core.paths import RefusedPlaces, bytes_of, text_of
from rootsd.state.ledger import Ledger
from rootsd.state.store.store import Store
from rootsd.state.timeout_verifier import BlockingVerifier, TimeoutVerifier
from rootsd.vcs.probe import probe
from rootsd.vcs.verify import RootVerifier
from support.ledger_harness import no_expiries
from support.sample_decisions import NOON, PERSON
from support.stores import outside
from support.system_parts import folder_safety

DONE = "done\n"
PENDING = Verdict.PENDING
State = dict[str, Any]


class Memory(StrEnum):
    """How the process recognizes an approved folder."""

    IDENTITY = "identity"
    PATH = "path"  # the control: trust any folder at the path


class _Trusting:
    """A verifier that trusts any folder at an approved path."""

    lstat_calls = 0

    def verify(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        return [seen for path in roots if not isinstance(seen := look(path), ProjectObserved)]

    def verify_more(self, roots: Mapping[bytes, Identity]) -> list[Observation]:
        return self.verify(roots)


def look(path: bytes) -> Observation:
    """Return what a program sees that recognizes folders by their path."""
    if not os.path.isdir(path):
        return probe(path)
    return ProjectObserved(path, ProjectKind.GIT, Identity(b"", 1, path, None, 0))


@dataclass
class LedgerProcess:
    """Starts the process, gives it orders, and kills it. It forks, so it needs a single thread."""

    state: Path
    paths: Sequence[str]
    memory: Memory
    pid: int = 0

    def start(self) -> State:
        """Start, or restart, and return the state."""
        # A pipe keeps its content after the writer was killed.
        orders, self._orders = os.pipe()
        answers, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._orders)
            os.close(answers)
            self._live(orders, writing)
        os.close(orders)
        os.close(writing)
        self._answers = os.fdopen(answers)
        return self._state()

    def order(self, *words: str) -> State:
        """Give an order, and return the state after it was carried out or refused."""
        self.send(*words)
        assert self._answers.readline() == DONE, "the keeper died"
        return self._state()

    def send(self, *words: str) -> None:
        """Give an order without waiting."""
        os.write(self._orders, json.dumps(words).encode() + b"\n")

    def kill(self) -> bool:
        """Kill the process, and return whether it had acknowledged the last order."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._orders)
        with self._answers as answers:
            return answers.readline() == DONE

    def _state(self) -> State:
        line = self._answers.readline()
        assert line, "the keeper died"
        state: State = json.loads(line)
        return state

    def _live(self, orders: int, answers: int) -> NoReturn:
        status = 1
        try:
            anyio.run(self._serve, orders, answers)
            status = 0
        finally:
            os._exit(status)

    async def _serve(self, orders: int, answers: int) -> None:
        with closing(Store.open(self.state, outside(self.state), lambda: NOON)) as store:
            loaded = store.load()
            catalog = Catalog.of(
                loaded.projects, loaded.rules, RefusedPlaces(b"/nobody"), loaded.next_rule
            )
            surroundings = folder_safety()
            is_own = self.memory is Memory.IDENTITY

            def looker() -> BlockingVerifier:
                return RootVerifier(surroundings) if is_own else _Trusting()

            verifier = TimeoutVerifier(looker, tuple, lambda _paths: None)
            expiries = no_expiries()
            ledger = Ledger(catalog, store, verifier, expiries=expiries, now=lambda: NOON)
            see = probe if is_own else look
            with os.fdopen(orders) as lines:
                os.write(answers, await self._told(ledger, store, see))
                for line in lines:
                    with suppress(RootsdError):
                        await ledger.execute(_orders(ledger.catalog, *json.loads(line)))
                    os.write(answers, DONE.encode())
                    os.write(answers, await self._told(ledger, store, see))

    async def _told(
        self, ledger: Ledger, store: Store, see: Callable[[bytes], Observation]
    ) -> bytes:
        before = {text_of(root.path) for root in (await ledger.current()).roots}
        await ledger.observe([see(bytes_of(path)) for path in self.paths])
        after = {text_of(root.path) for root in (await ledger.current()).roots}
        stored = store.load()
        verdicts = {
            text_of(p.path): p.ruling.decision.verdict
            for p in stored.projects
            if p.ruling.decision is not None
        }
        state: State = {
            "told": [sorted(before), sorted(after)],
            "approved": sorted(p for p, v in verdicts.items() if v is Verdict.APPROVED),
            "denied": sorted(p for p, v in verdicts.items() if v is Verdict.DENIED),
            "rules": sorted(r.number for r in stored.rules if r.verdict is not PENDING),
            "lapsed": sorted(r.number for r in stored.rules if r.verdict is PENDING),
            "seq": len(store.events()),
        }
        return json.dumps(state).encode() + b"\n"


def _orders(catalog: Catalog, verb: str, what: str) -> list[Order]:
    path = bytes_of(what)
    match verb:
        case "approve":
            known = catalog.projects.get(path)
            return [Approve(path, known.observed.identity if known else None, PERSON)]
        case "deny":
            return [Deny(path, PERSON)]
        case "rule approve":
            return [AddRule(path, Verdict.APPROVED, PERSON)]
        case "rule deny":
            return [AddRule(path, Verdict.DENIED, PERSON)]
        case "rule rm":
            return [RemoveRule(int(what), PERSON)]
        case "rules again":
            lapsed = (rule for rule in catalog.rules if rule.verdict is PENDING)
            return [ApproveRule(rule.number, PERSON) for rule in lapsed]
        case _:
            return []  # reads only
