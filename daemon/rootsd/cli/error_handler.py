"""Turn the errors of a command into messages, exit statuses, and a bug log."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rootsd.cli.invocation import Invocation
from rootsd.core.errors import Exit, RootsdError, exit_of
from rootsd.system.private_files import make_folder

BUG_LOG = b"bugs.log"


def run_with_error_handler(invocation: Invocation, action: Callable[[], int]) -> int:
    """Run `action` and return the exit status; expected errors are shown, a bug is written down.

    A bug passes through: the interpreter hands it to the hook set here and exits with 1.
    """
    sys.excepthook = lambda *bug: report_bug(invocation, *bug)
    _escape_unencodable_characters()
    try:
        status = action()
        sys.stdout.flush()
    except RootsdError as error:
        choices = getattr(error, "choices", ())
        invocation.output.error(error.code.value, error.message, error.remedy, choices)
        return exit_of(error.code)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return Exit.BROKEN_PIPE
    return status


def report_bug(
    invocation: Invocation,
    kind: type[BaseException],
    bug: BaseException,
    where: TracebackType | None,
) -> None:
    """Write the traceback into a log file and name that; onto stderr where no file can be."""
    story = "".join(traceback.format_exception(kind, bug, where))
    if invocation.flags.verbose:
        sys.stderr.write(story)
    try:
        kept_in = _append_to_bug_log(invocation, story)
    except (OSError, RootsdError):
        sys.stderr.write(story)
        kept_in = None
    remedy = f"report it with what {kept_in} holds" if kept_in else "report it with the above"
    invocation.output.error("bug", f"this is a bug in rootsd: {kind.__name__}: {bug}", remedy)


def _append_to_bug_log(invocation: Invocation, story: str) -> str:
    """Append the traceback to the log of bugs, readable by this user alone; returns its path."""
    folder = invocation.places.log
    make_folder(Path(os.fsdecode(folder)))
    file = os.path.join(folder, BUG_LOG)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with open(os.open(file, flags, 0o600), "a", encoding="utf-8", errors="replace") as log:
        log.write(f"{moment} rootsd {invocation.command}\n{story}\n")
    return os.fsdecode(file)


def _escape_unencodable_characters() -> None:
    """A locale that lacks a character must not turn a listing into a bug."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let the interpreter's last flush go nowhere; the reader of the pipe has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
