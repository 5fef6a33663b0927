"""Control requests for the guard, the log of decisions, and undo."""

from __future__ import annotations

from typing import ClassVar, NotRequired, TypedDict

from rootsd.core.guard_setting import Guard
from rootsd.wire.decisions import ConfirmationItem
from rootsd.wire.error_facts import ErrorFacts
from rootsd.wire.projects import ProjectItem
from rootsd.wire.request import Answer, ApplyMode, ControlRequest, EmptyResult

MAX_LOG_WAIT_S = 30
"""The longest time to wait for one answer. Then a follower of the log asks again."""


class JudgedProgram(TypedDict):
    """A program between a caller and the start of its login."""

    pid: int
    """Its process."""
    name: str
    """The name of the process, safe to show."""
    program: str | None
    """The path of its executable or script, safe to show. Null if it could not be read."""
    use: str | None
    """Why it counts as a person's, a value of `ProgramUse`. Null for an unknown program."""
    allow: str | None
    """The command that makes an unknown program a known one. Null if there is none."""


class JudgedCaller(TypedDict):
    """How the guard judged a command."""

    at: str
    """When it was given (RFC 3339)."""
    what: str
    """The command, safe to show."""
    judgment: str
    """`passed`, `asked` for a word, or `refused`."""
    why: str | None
    """Why it was asked or refused. Null if it passed."""
    programs: list[JudgedProgram]
    """The caller, then the program that started it, and so on."""


class GuardStatus(Answer):
    """The guard."""

    guard: str
    """A value of `Guard`."""
    allowed: list[str]
    """The programs that a person has added to those that the guard knows."""
    last: JudgedCaller | None
    """How the guard judged the last command that decides something. Null if there was none since
    the daemon started, or with the guard off."""


class GuardQuery(ControlRequest, frozen=True):
    """Ask which callers may decide: `GuardStatus`."""

    method: ClassVar[str] = "guard"
    result: ClassVar[type] = GuardStatus


class SetGuardRequest(ControlRequest, frozen=True):
    """Set the guard: `GuardStatus`. This is an order."""

    method: ClassVar[str] = "set-guard"
    result: ClassVar[type] = GuardStatus

    guard: Guard
    effect: ApplyMode = ApplyMode.APPLY


class AllowProgramsRequest(ControlRequest, frozen=True):
    """Add programs to those that the guard knows as a person's: `GuardStatus`. This is an order.

    A program is the path of an executable or a script, or `python -m NAME`.
    """

    method: ClassVar[str] = "allow-programs"
    result: ClassVar[type] = GuardStatus

    programs: tuple[str, ...]
    effect: ApplyMode = ApplyMode.APPLY


class DisallowProgramsRequest(ControlRequest, frozen=True):
    """Take back what `allow-programs` added: `GuardStatus`. This is an order."""

    method: ClassVar[str] = "disallow-programs"
    result: ClassVar[type] = GuardStatus

    programs: tuple[str, ...]
    effect: ApplyMode = ApplyMode.APPLY


class IntroduceRequest(ControlRequest, frozen=True):
    """Have the guard look at the caller, which then hides from other programs. The answer is `{}`.

    The guard remembers what it saw until the process ends. A hidden process that it has not seen
    before counts as an unknown program.
    """

    method: ClassVar[str] = "introduce"
    result: ClassVar[type] = EmptyResult


class RemoteCommandRequest(ControlRequest, frozen=True):
    """Ask whether the caller may run `command` on another machine, as if it were a command here.

    `effect` is a dry run for a command that decides nothing. The answer is `{}`.
    """

    method: ClassVar[str] = "remote-command"
    result: ClassVar[type] = EmptyResult

    command: str
    effect: ApplyMode = ApplyMode.APPLY


class UndoneEvent(TypedDict):
    """The event that an undo took back."""

    seq: int
    """Its number."""
    verb: str
    """Its verb."""


class LogItem(TypedDict):
    """One event of the history."""

    seq: int
    """Its number, which `rootsd undo` takes."""
    at: str
    """When it happened."""
    verb: str
    """What happened, such as `approved`, `rule added`, `lapsed`, `refused`, or `command`."""
    actor: str | None
    """Who gave the order, a value of `ActorKind`. Null for a change that the daemon observed."""
    by: str | None
    """More about the actor, such as the terminal, or why a change was observed. May be null."""
    path: str | None
    """The path. Null if the event is not about a project, or if the path is not UTF-8."""
    path_b64: str | None
    """The path in base64, if it is not UTF-8."""
    what: str
    """A description that is safe to show."""
    undid: UndoneEvent | None
    """The undone event, or null if this is not an undo."""
    wall: NotRequired[int]
    """The process of the `rootsd confine` or `rootsd run` behind whose wall a program requested a
    folder. Left out for all other events."""


class LogListing(Answer):
    """Events, oldest first."""

    items: list[LogItem]
    """The events."""


class LogQuery(ControlRequest, frozen=True):
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
    """The guard showed a word on the caller's terminal, below a summary of the command.

    A person types the word on that terminal, and the same connection sends the command again. Then
    rootsd carries it out. The word is never sent over the connection.
    """

    terminal: str
    """The terminal, such as `/dev/pts/3`."""


class ErrorDetails(ErrorFacts):
    """The `data` of an error on the control socket."""

    challenge: NotRequired[Challenge]
    """What a person has to confirm before the command is sent again."""
    unconfirmed: NotRequired[bool]
    """True for an order about several projects that lacks `confirmed`."""


CHALLENGE_ANSWER = "typed"
"""The parameter that an order has besides its own when it is sent again after a challenge."""


class UndoResult(Answer):
    """The effect of an undo."""

    undone: list[LogItem]
    """The undone events, oldest first."""
    items: list[ProjectItem]
    """Their projects, as they are now."""
    confirmation: NotRequired[ConfirmationItem]
    """In a dry run that would give several projects more, what a person has to confirm."""


class UndoRequest(ControlRequest, frozen=True):
    """Undo event `seq` of the log: `UndoResult`.

    Without `seq`, undo the newest order of a person that is not undone. If a change that undo does
    not take back is newer, this is an error. `confirmed` is that of a `DecideRequest`.
    """

    method: ClassVar[str] = "undo"
    result: ClassVar[type] = UndoResult
    is_long: ClassVar[bool] = True

    seq: int | None = None
    effect: ApplyMode = ApplyMode.APPLY
    confirmed: tuple[str, ...] = ()
