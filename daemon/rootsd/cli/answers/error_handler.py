"""Turn the errors of a command into messages, exit statuses, and a bug log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rootsd.cli.answers.invocation import Invocation
from rootsd.core.errors import Exit, RootsdError, exit_of

if TYPE_CHECKING:
    from types import TracebackType

BUG_LOG = b"bugs.log"


def run_with_error_handler(invocation: Invocation, action: Callable[[], int]) -> int:
    """Run `action` and return the exit status. Print expected errors.

    An unexpected exception (a bug) passes through: the interpreter calls the hook set here, which
    logs it, and exits with status 1. An OSError passes, too: see `rootsd.__main__`.
    """
    sys.excepthook = lambda *bug: report_bug(invocation, *bug)
    _escape_unencodable_characters()
    try:
        status = action()
        sys.stdout.flush()
    except RootsdError as failure:
        from rootsd.cli.text.better_command import about_glob, better_commands

        error = about_glob(invocation.words, failure)
        invocation.output.error(error, better_commands(invocation.words, error))
        return exit_of(error.code)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return status


def report_bug(
    invocation: Invocation,
    kind: type[BaseException],
    bug: BaseException,
    where: TracebackType | None,
) -> None:
    """Append the traceback to a log file and print the file's path.

    If the file cannot be written, print the traceback on stderr.
    """
    import traceback

    report = "".join(traceback.format_exception(kind, bug, where))
    if invocation.flags.verbose:
        sys.stderr.write(report)
    try:
        file = _append_to_bug_log(invocation, report)
    except (OSError, RootsdError):
        sys.stderr.write(report)
        file = None
    remedy = f"report it, and attach {file}" if file else "report it with the text above"
    invocation.output.bug(f"this is a bug in rootsd: {kind.__name__}: {bug}", remedy)


def _append_to_bug_log(invocation: Invocation, report: str) -> str:
    """Append the traceback to the bug log, which only this user can read; return its path."""
    from pathlib import Path

    from rootsd.files.private_files import make_folder

    folder = invocation.places.log
    make_folder(Path(os.fsdecode(folder)))
    file = os.path.join(folder, BUG_LOG)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with open(os.open(file, flags, 0o600), "a", encoding="utf-8", errors="replace") as log:
        log.write(f"{moment} rootsd {invocation.command}\n{report}\n")
    return os.fsdecode(file)


def _escape_unencodable_characters() -> None:
    """Print characters that the locale lacks as escapes, instead of raising UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
