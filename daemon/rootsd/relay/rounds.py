"""The requests of 2026-07-28 that may come back with a question, and those that were sent again.

A request that the relay sends again bears an id of its own, which the client never sees: answers
and cancellations are mapped. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from rootsd.relay.modern import Whose
from rootsd.wire.jsonrpc import Id, Request


class Round(NamedTuple):
    """A request as it went to the server; `number` counts how often it went again."""

    request: Request
    text: str
    whose: Whose
    number: int = 0


class Rounds:
    """Keyed by the id at the server, which is the client's own until a request goes again."""

    def __init__(self) -> None:
        self._rounds: dict[Id, Round] = {}
        self._aliases: dict[Id, Id] = {}
        self._resting: set[Id] = set()

    def begin(self, round_: Round, id_: Id) -> None:
        """A request goes to the server under `id_`."""
        self._rounds[id_] = round_
        self._resting.discard(round_.request.id)
        if id_ != round_.request.id:
            self._aliases[round_.request.id] = id_

    def end(self, id_: Id) -> Round | None:
        """The server has answered what it knows as `id_`."""
        round_ = self._rounds.pop(id_, None)
        if round_ is not None:
            self._aliases.pop(round_.request.id, None)
        return round_

    def __bool__(self) -> bool:
        return bool(self._rounds)

    def __contains__(self, id_: Id) -> bool:
        """Whether the server may ask for more in its answer to `id_`."""
        return id_ in self._rounds

    def has_alias(self, id_: Id) -> bool:
        """Whether what the server knows as `id_` has another id at the client."""
        round_ = self._rounds.get(id_)
        return round_ is not None and round_.request.id != id_

    def rest(self, round_: Round) -> None:
        """The request waits to go again: the server has nothing of it at the moment."""
        self._resting.add(round_.request.id)

    def is_resting(self, round_: Round) -> bool:
        """Whether it still waits, and was not cancelled meanwhile."""
        return round_.request.id in self._resting

    def cancel(self, id_: Id) -> Id | None:
        """The client cancels its request: the id to cancel at the server, None where it has
        nothing to cancel."""
        if id_ in self._resting:
            self._resting.discard(id_)
            return None
        return self._aliases.get(id_, id_)

    def clear(self) -> None:
        """The server is gone."""
        self._rounds.clear()
        self._aliases.clear()
        self._resting.clear()
