"""The exit statuses, one for each way a command can end; from 64 to 78 those of sysexits(3)."""

from __future__ import annotations

from enum import IntEnum

from rootsd.core.errors import ErrorCode


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
