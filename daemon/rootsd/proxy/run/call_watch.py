"""Tell a server that asks for roots in each call from one that asks once. Pure.

Both kinds ask during their first call. The first kind needs no restart after a change, which would
lose its state. The second kind keeps the answer: it uses a denied folder for ever, and never sees
an approved one. Only a second call of the same tool tells them apart:

* It asks again: so it asks in each call.
* It is answered without a question: so the server keeps the roots that it has.

A request of the server does not say which call it is for. So a question counts for all calls in
flight, and "without a question" must hold for each of their tools. What counts is always the last
evidence, with one exception: a server that was once seen to keep its roots may also ask now and
then, for example once in a minute. No number of questions proves that it asks in each call.

A failed call proves little, because it may have failed before the server looked at its roots. It
counts only after a change that the server did not ask about: then the old roots may be the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from rootsd.proxy.run.readiness import ReadinessGate
from rootsd.wire.jsonrpc import ErrorResponse, Id, Request, Response

CALL_METHODS = frozenset(
    {
        "tools/call", "resources/read", "prompts/get", "completion/complete", "resources/list",
        "resources/templates/list",
    }
)  # fmt: skip
"""The requests for which a server may need its roots. A list of resources may name their files."""


class CallOutcome(Enum):
    """What the answer to a call says."""

    DONE = auto()
    FAILED = auto()
    UNFINISHED = auto()
    """The server wants input first (MCP 2026-07-28)."""


def outcome_of(answer: Response | ErrorResponse) -> CallOutcome:
    """Return what an answer of the server says about the call."""
    match answer:
        case Response(_, {"resultType": "input_required"}):
            return CallOutcome.UNFINISHED
        case ErrorResponse() | Response(_, {"isError": True}):
            return CallOutcome.FAILED
        case _:
            return CallOutcome.DONE


class _Call:
    """A call in flight. `after` is the number of questions before it. `asked` says that the server
    asked about roots in it.
    """

    __slots__ = ("after", "asked", "tool")

    def __init__(self, tool: tuple[str, Any], after: int) -> None:
        self.tool = tool
        self.after = after
        self.asked = False


class CallWatch:
    """The calls in flight of one session, and what they say about the server to the `gate`."""

    def __init__(self, gate: ReadinessGate) -> None:
        self._gate = gate
        self._calls: dict[Id, _Call] = {}
        self._questions = 0
        self._askers: set[tuple[str, Any]] = set()  # the tools that were called at a question
        self._to_repeat: set[tuple[str, Any]] = set()  # those since the last question
        self._has_kept = False  # the program, so this outlasts a restart

    @property
    def in_flight(self) -> bool:
        """Whether the server has a call."""
        return bool(self._calls)

    def sent(self, request: Request) -> None:
        """Note a request to the server."""
        if request.method in CALL_METHODS:
            self._calls[request.id] = _Call(_tool_of(request), self._questions)

    def sent_again(self, request: Request) -> None:
        """Note a request that the client repeats, now with an answer about roots."""
        self.sent(request)
        for call in self._known(request.id):
            call.asked = True

    def asked(self, id_: Id | None = None) -> None:
        """Note a question about roots in the call `id_`, or in any call in flight."""
        calls = [*self._calls.values()] if id_ is None else [*self._known(id_)]
        tools = {call.tool for call in calls}
        again = (
            not self._has_kept
            and tools <= self._askers
            and all(not call.asked and call.after == self._questions for call in calls)
        )
        for call in calls:
            call.asked = True
        self._questions += 1
        self._askers |= tools
        self._to_repeat = tools
        if again:
            self._gate.asks_in_each_call()
        else:
            self._gate.roots_requested_in_call()
            self._gate.may_ask_again = not self._has_kept

    def answered(self, id_: Id, outcome: CallOutcome) -> None:
        """Note an answer of the server."""
        call = self._calls.pop(id_, None)
        if call is None or call.asked or call.after != self._questions:
            if call is not None and outcome is CallOutcome.FAILED:
                self._askers.discard(call.tool)  # it may ask until its start succeeds
            return
        if call.tool not in self._to_repeat or outcome is CallOutcome.UNFINISHED:
            return
        if outcome is CallOutcome.FAILED and not self._gate.stale:
            return
        self._to_repeat.discard(call.tool)
        if not self._to_repeat:
            self._has_kept = self._has_kept or outcome is CallOutcome.DONE
            self._gate.keeps_roots()

    def dropped(self, id_: Id) -> None:
        """Note that a request gets no answer of the server."""
        self._calls.pop(id_, None)

    def server_lost(self) -> None:
        """Note that another server replaces the current one."""
        self._calls.clear()
        self._askers.clear()
        self._to_repeat.clear()

    def _known(self, id_: Id) -> Iterable[_Call]:
        call = self._calls.get(id_)
        return () if call is None else (call,)


def _tool_of(request: Request) -> tuple[str, Any]:
    match request.params:
        case {"name": str() as name} | {"uri": str() as name}:
            return request.method, name
        case _:
            return request.method, None
