"""Expected errors with a code, a message and a remedy, and the exit status for each code.

Errors that a caller can act on: a code, a sentence, and the command to type next.

`RootsdError` is what is expected to go wrong; anything else is a bug and ends the process.

The exit statuses, one for each way a command can end; from 64 to 78 those of sysexits(3).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, StrEnum


class ErrorCode(StrEnum):
    """What went wrong, in a word; the command line maps each to one exit status."""

    FAILED = "failed"
    USAGE = "usage"
    PENDING = "pending"
    DENIED = "denied"
    NOTHING_MATCHED = "nothing-matched"
    AMBIGUOUS = "ambiguous"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    BUSY = "busy"
    BAD_CONFIG = "bad-config"


class RootsdError(Exception):
    """An expected failure. `remedy` names the next command, or is empty."""

    code = ErrorCode.FAILED

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class OrderRefused(RootsdError):
    """An order that cannot be followed; nothing was changed."""


class RefusedPlace(OrderRefused):
    """The path may never be a root, whoever asks."""


class DeniedHere(OrderRefused):
    """A denial on the path, above it, or inside it stands against the approval."""

    code = ErrorCode.DENIED


class IdentityChanged(OrderRefused):
    """The directory is not the one the person was shown."""


class NotPresent(OrderRefused):
    """The project is not there, not whole, or cannot be reached."""


class NameTaken(OrderRefused):
    """Another project holds that name."""


class UnknownProject(OrderRefused):
    """No project is known at that path or under that reference."""

    code = ErrorCode.NOTHING_MATCHED


class AmbiguousReference(RootsdError):
    """A reference fits several projects; `choices` are names that fit one each."""

    code = ErrorCode.AMBIGUOUS

    def __init__(self, message: str, remedy: str = "", choices: Sequence[str] = ()) -> None:
        super().__init__(message, remedy)
        self.choices = tuple(choices)


class UnknownRule(OrderRefused):
    """No rule has that number."""

    code = ErrorCode.NOTHING_MATCHED


class CannotUndo(OrderRefused):
    """What is to be undone is no decision, or was overtaken by a later one."""


class CallerRefused(RootsdError):
    """The caller may not give orders; a person's own terminal is needed."""

    code = ErrorCode.REFUSED


class BadConfig(RootsdError):
    """The configuration cannot be used; the message names file, line and key."""

    code = ErrorCode.BAD_CONFIG


class DaemonUnreachable(RootsdError):
    """No daemon answers."""

    code = ErrorCode.UNREACHABLE


class Busy(RootsdError):
    """Somebody else holds what is needed; the same call may succeed later."""

    code = ErrorCode.BUSY


class Exit(IntEnum):
    """What `$?` says. The members up to BAD_CONFIG bear the names of the error codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PENDING = 3
    DENIED = 4
    NOTHING_MATCHED = 5
    AMBIGUOUS = 6
    REFUSED = 7
    UNREACHABLE = 69
    BUSY = 75
    BAD_CONFIG = 78
    INTERRUPTED = 130  # 128 + SIGINT, as shells have it
    BROKEN_PIPE = 141  # 128 + SIGPIPE


def exit_of(code: ErrorCode) -> Exit:
    """The status that a command ends with after an error of this code."""
    return Exit[code.name]
