"""Control requests for the guard, the log of decisions, and undo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.guard import Guard
from rootsd.wire.decisions import ApplyMode
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest, EmptyResult

MAX_LOG_WAIT_S = 30
"""The longest time to wait for one answer. Then a follower of the log asks again."""


class GuardStatus(TypedDict):
    """The guard: a value of `core.guard.Guard`."""

    revision: int
    guard: str
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class GuardQuery(ControlRequest):
    """Ask which callers may decide: `GuardStatus`."""

    method: ClassVar[str] = "guard"
    result: ClassVar[type] = GuardStatus


@dataclass(frozen=True, slots=True)
class SetGuardRequest(ControlRequest):
    """Set the guard: `GuardStatus`. This is an order."""

    method: ClassVar[str] = "set-guard"
    result: ClassVar[type] = GuardStatus

    guard: Guard
    effect: ApplyMode = ApplyMode.APPLY


@dataclass(frozen=True, slots=True)
class RemoteCommandRequest(ControlRequest):
    """Ask whether the caller may run `command` on another machine, as if it were a command here.

    `effect` is a dry run for a command that decides nothing. The answer is `{}`.
    """

    method: ClassVar[str] = "remote-command"
    result: ClassVar[type] = EmptyResult

    command: str
    effect: ApplyMode = ApplyMode.APPLY


class UndoneEvent(TypedDict):
    """The event that an undo took back: its number and its verb."""

    seq: int
    verb: str


class LogItem(TypedDict):
    """One event.

    * `path`: null if the event is not about a project, or if the path is not UTF-8.
    * `what`: a description that is safe to show.
    * `actor`, `by`: the actor that gave the order, or null for a change that the daemon observed.
    * `undid`: the undone event, or null if this is not an undo.
    """

    seq: int
    at: str
    verb: str
    actor: str | None
    by: str | None
    path: str | None
    path_b64: str | None
    what: str
    undid: UndoneEvent | None


class LogListing(TypedDict):
    """Events, oldest first."""

    revision: int
    items: list[LogItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class LogQuery(ControlRequest):
    """Ask for the `last` decisions and refused attempts: `LogListing`.

    With `after`, the answer has the first `last` events after that number. If there are none, the
    daemon waits for one for up to `wait_s` seconds.
    """

    method: ClassVar[str] = "log"
    result: ClassVar[type] = LogListing

    last: int = 50
    after: int | None = None
    wait_s: int = 0


class Challenge(TypedDict):
    """The guard showed a word on the caller's `terminal`, below a summary of the command.

    A person types the word on that terminal, and the same connection sends the command again. Then
    rootsd carries it out. The word is never sent over the connection. Version 0.1.0 did send it,
    so a command of that version fails.
    """

    terminal: str


class ErrorDetails(TypedDict):
    """The `data` of an error that a caller can act on.

    `code` is a value of `core.errors.ErrorCode`, and `remedy` is a command or empty. `choices` has
    the projects that match an ambiguous reference.
    """

    code: str
    remedy: str
    choices: NotRequired[list[str]]
    challenge: NotRequired[Challenge]


CHALLENGE_ANSWER = "typed"
"""The parameter that an order has besides its own when it is sent again after a challenge."""


class UndoResult(TypedDict):
    """The undone events, oldest first, and their projects in their current state."""

    revision: int
    undone: list[LogItem]
    items: list[ProjectItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class UndoRequest(ControlRequest):
    """Undo event `seq` of the log: `UndoResult`.

    Without `seq`, undo the newest order of a person that is not undone.
    """

    method: ClassVar[str] = "undo"
    result: ClassVar[type] = UndoResult

    seq: int | None = None
    effect: ApplyMode = ApplyMode.APPLY
