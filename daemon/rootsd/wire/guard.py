"""Control requests for the guard, the decision log and undo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.guard import Guard
from rootsd.wire.decisions import ApplyMode
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest

MAX_LOG_WAIT_S = 30
"""The longest time that a follower of the log waits for one answer. It then asks again."""


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
    """Set the guard. This is an order like any other: `GuardStatus`."""

    method: ClassVar[str] = "set-guard"
    result: ClassVar[type] = GuardStatus

    guard: Guard
    effect: ApplyMode = ApplyMode.APPLY


class UndoneEvent(TypedDict):
    """The event that an undo took back: its number and its verb."""

    seq: int
    verb: str


class LogItem(TypedDict):
    """One event.

    * `path`: null if the event is not about a project, or if the path is not UTF-8.
    * `what`: a description in words that are safe to show.
    * `actor`, `by`: who gave the order; null for a change that the daemon observed.
    * `undid`: null if the event undoes nothing.
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

    With `after`, the answer has the first `last` events after that number. If there are none yet,
    it waits for one for up to `wait_s` seconds.
    """

    method: ClassVar[str] = "log"
    result: ClassVar[type] = LogListing

    last: int = 50
    after: int | None = None
    wait_s: int = 0


class Challenge(TypedDict):
    """The guard showed a word on the caller's own `terminal`, below a summary of the command.

    rootsd carries out the command if the same connection sends it again and the person typed the
    word on that terminal. The connection never carries the word. Version 0.1.0 sent it there; a
    command of that version gives up.
    """

    terminal: str


class ErrorDetails(TypedDict):
    """The `data` of an error that a caller can act on.

    `code` is a value of `core.errors.ErrorCode`, and `remedy` a command, or empty. `choices` are
    the projects that an ambiguous reference may mean.
    """

    code: str
    remedy: str
    choices: NotRequired[list[str]]
    challenge: NotRequired[Challenge]


class RefusedStatus(TypedDict):
    """Refused commands, or commands that an agent ran, since a person last looked.

    `what`, `by` and `why` describe the newest one.
    """

    count: int
    at: str
    what: str
    by: str
    why: str


CHALLENGE_ANSWER = "typed"
"""The parameter, next to those of the order, that answers a challenge on the same connection."""


class UndoResult(TypedDict):
    """The events that were undone, oldest first, and their projects as they are now."""

    revision: int
    undone: list[LogItem]
    items: list[ProjectItem]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class UndoRequest(ControlRequest):
    """Undo event `seq` of the log, or the newest order of a person that was not undone:
    `UndoResult`.
    """

    method: ClassVar[str] = "undo"
    result: ClassVar[type] = UndoResult

    seq: int | None = None
    effect: ApplyMode = ApplyMode.APPLY
