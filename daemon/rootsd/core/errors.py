"""Expected errors, with a code, a message and a remedy, and the exit status for each code.

A `RootsdError` is an error that a caller can act on. It has a code, a sentence, and the command to
type next. Any other exception is a bug and ends the process.

Each outcome of a command has its own exit status. The statuses from 64 to 78 are those of
sysexits(3).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, StrEnum


class ErrorCode(StrEnum):
    """The kind of an error. The command line maps each code to one exit status."""

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
    """An expected error, with a sentence for a person and the next command to type."""

    code = ErrorCode.FAILED
    """The kind of the error, a string such as `busy`."""
    message: str
    """What failed, and why."""
    remedy: str
    """The next command to type, such as `rootsd up`, or empty."""
    typed = ""
    """The word of the command that was not understood, or empty."""
    choices: Sequence[str] = ()
    """What a person may have meant by `typed`."""

    def __init__(
        self, message: str, remedy: str = "", *, typed: str = "", choices: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.typed, self.choices = typed, tuple(choices)

    @property
    def sentence(self) -> str:
        """The message, and the remedy if there is one: `MESSAGE (try: COMMAND)`."""
        return f"{self.message} (try: {self.remedy})" if self.remedy else self.message


class OrderRefused(RootsdError):
    """An order, or a query before it, that rootsd cannot carry out. It changed nothing."""


class RefusedPlace(OrderRefused):
    """A path that can never be a root."""


class DeniedHere(OrderRefused):
    """An approval that has no effect, because the path, or a path above or below it, is denied."""

    code = ErrorCode.DENIED


class IdentityChanged(OrderRefused):
    """A directory other than the one that the person saw."""


class NotPresent(OrderRefused):
    """A project that is missing, incomplete, or out of reach."""


class NameTaken(OrderRefused):
    """A name that another project has."""


class UnknownProject(OrderRefused):
    """A path or a reference that matches no known project."""

    code = ErrorCode.NOTHING_MATCHED


class AmbiguousReference(RootsdError):
    """A reference that matches several projects. `choices` has a name for each of them."""

    code = ErrorCode.AMBIGUOUS


class UnknownRule(OrderRefused):
    """A number that no rule has."""

    code = ErrorCode.NOTHING_MATCHED


class CannotUndo(OrderRefused):
    """An event that is not a decision, or that a later decision replaced."""


class CallerRefused(RootsdError):
    """A caller that may not give orders. A person has to use their own terminal."""

    code = ErrorCode.REFUSED


class BadConfig(RootsdError):
    """A configuration that is not valid. The message names the file, the line, and the key.

    If there are several problems, the message has one line for each of them.
    """

    code = ErrorCode.BAD_CONFIG

    @property
    def summary(self) -> str:
        """The message on a single line, for logs and tables."""
        return "; ".join(line.strip() for line in self.message.split("\n"))


class Unconfirmed(RootsdError):
    """An order about several projects that no person has confirmed. It changed nothing."""

    code = ErrorCode.REFUSED


class DaemonUnreachable(RootsdError):
    """No answer from the daemon."""

    code = ErrorCode.UNREACHABLE


class Busy(RootsdError):
    """A resource that another process holds. The same call may succeed later."""

    code = ErrorCode.BUSY


class Exit(IntEnum):
    """The exit statuses. The members up to BAD_CONFIG have the names of the error codes."""

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
    INTERRUPTED = 130  # 128 + SIGINT, as in shells
    BROKEN_PIPE = 141  # 128 + SIGPIPE


def exit_of(code: ErrorCode) -> Exit:
    """Return the exit status for an error with this code."""
    return Exit[code.name]
