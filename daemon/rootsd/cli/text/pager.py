"""Show a list that is longer than the terminal in a pager, such as less."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

OFF = "off"
_USUAL = "less"
# Leave a short text on the screen, pass colors on, and keep the text at the end, as in git.
_LESS_OPTIONS = "FRX"


def needs_pager(lines: Sequence[str]) -> bool:
    """Return whether a person could not see all lines on the terminal at once.

    Some terminals, such as that of script(1), say that they have no lines: nobody knows then.
    """
    if not sys.stdin.isatty() or os.environ.get("TERM") == "dumb":
        return False
    try:
        height = os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        return False
    return 0 < height <= len(lines)


def page(text: str, configured: str) -> bool:
    """Show `text` in the pager, and return true when the person leaves it.

    The pager is the `configured` command, or else that of the variable PAGER, or else less. Return
    false if there is none.
    """
    command = configured or os.environ.get("PAGER", "").strip() or _USUAL
    if command == OFF:
        return False
    import signal
    import subprocess

    try:
        pager = subprocess.Popen(  # noqa: S603 - the person chose it
            shlex.split(command),
            stdin=subprocess.PIPE,
            text=True,
            errors="backslashreplace",
            env={"LESS": _LESS_OPTIONS, **os.environ},
        )
    except (OSError, ValueError):  # there is no such program, or the quotes are wrong
        return False
    # ^C is for the pager, which decides what it means.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):  # the person left before the end
            pager.communicate(text)
    finally:
        signal.signal(signal.SIGINT, before)
    return True
