"""Control requests for the guard, the decision log and undo.

Who may decide, and what was decided or refused: requests and answers.

Decisions that a person takes back, in control requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypedDict

from rootsd.core.guard import Guard
from rootsd.wire.decisions import ApplyMode
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import ControlRequest

MAX_LOG_WAIT_S = 30
"""How long a follower is kept waiting for one answer; it asks again."""


@dataclass(frozen=True, slots=True)
class GuardQuery(ControlRequest):
    """Who may decide: `GuardStatus`."""

    method: ClassVar[str] = "guard"


@dataclass(frozen=True, slots=True)
class SetGuardRequest(ControlRequest):
    """Let `guard` judge callers from now on, an order like any other: `GuardStatus`."""

    method: ClassVar[str] = "set-guard"

    guard: Guard
    effect: ApplyMode = ApplyMode.APPLY


@dataclass(frozen=True, slots=True)
class LogQuery(ControlRequest):
    """The `last` decisions and refused attempts: `LogListing`. With `after`, the first `last` of
    those after that number; where there are none yet, the answer waits for one up to `wait_s`."""

    method: ClassVar[str] = "log"

    last: int = 50
    after: int | None = None
    wait_s: int = 0


class GuardStatus(TypedDict):
    """`guard` is a word of `core.callers.Guard`."""

    revision: int
    guard: str
    warnings: list[str]


class UndoneEvent(TypedDict):
    """The event that an undoing took back: its number, and its verb."""

    seq: int
    verb: str


class LogItem(TypedDict):
    """One event. `path` is null where it is not about a project, or not UTF-8; `what` tells of it
    in words that are safe to show, `actor` and `by` who ordered it, null for what was seen.
    `undid` is null where the event undoes nothing."""

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


class Challenge(TypedDict):
    """A word was shown on the caller's own `terminal`, below what is at stake. The command is
    followed if the same connection sends it again with the word as `TYPED`. The word itself never
    goes over the connection. Version 0.1.0 sent it there; a command of that version gives up."""

    terminal: str


class RefusedStatus(TypedDict):
    """Commands that were refused, or that an agent ran, since a person looked last. `what`, `by`
    and `why` are those of the newest."""

    count: int
    at: str
    what: str
    by: str
    why: str


CHALLENGE_ANSWER = "typed"
"""The parameter, beside those of an order, that answers a challenge on the same connection."""


@dataclass(frozen=True, slots=True)
class UndoRequest(ControlRequest):
    """Take back what event `seq` of the log decided; without one, the newest order of a person
    that was not undone yet, with all it decided: `Undone`."""

    method: ClassVar[str] = "undo"

    seq: int | None = None
    effect: ApplyMode = ApplyMode.APPLY


class UndoResult(TypedDict):
    """The events that were taken back, oldest first, and the projects that they were about, as
    they are now."""

    revision: int
    undone: list[LogItem]
    items: list[ProjectItem]
    warnings: list[str]
