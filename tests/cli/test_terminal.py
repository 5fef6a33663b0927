"""The challenge on a real terminal: shown, read, and never answered by what was typed before."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from rootsd.cli.terminal import typed_at

CHALLENGE = {"lines": ["approve /a\x1b[2J", "This is asked."], "word": "bakedi"}
ASK = f"""
import sys
from rootsd.cli.terminal import typed_at
sys.stdin.readline()
print("got", repr(typed_at({CHALLENGE!r})), file=sys.stdout, flush=True)
"""
HANG_GUARD = 60


def _until(terminal: int, end: str) -> str:
    shown = ""
    while end not in shown:
        shown += os.read(terminal, 4096).decode()
    return shown


def test_it_is_shown_on_the_terminal_and_what_is_typed_then_is_the_answer() -> None:
    pid, terminal = pty.fork()
    if not pid:
        # Not the terminal's: neither what goes in nor what comes out is a person's.
        reading, writing = os.pipe()
        os.write(writing, b"go\n")
        os.dup2(reading, 0)
        os.execv(sys.executable, [sys.executable, "-c", ASK])  # noqa: S606
    shown = _until(terminal, "to go on: ")
    assert "approve /a\\u{1b}[2J" in shown
    assert "Type bakedi to go on: " in shown
    os.write(terminal, b" bakedi \n")
    assert "got 'bakedi'" in _until(terminal, "'\r\n")
    os.waitpid(pid, 0)
    os.close(terminal)


def test_what_was_typed_ahead_is_no_answer() -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", ASK])  # noqa: S606
    os.write(terminal, b"go\nbakedi\n")
    _until(terminal, "to go on: ")
    os.write(terminal, b"later\n")
    assert "got 'later'" in _until(terminal, "'\r\n")
    os.waitpid(pid, 0)
    os.close(terminal)


def test_where_there_is_no_terminal_there_is_no_answer() -> None:
    asking = f"from rootsd.cli.terminal import typed_at; print(typed_at({CHALLENGE!r}))"
    done = subprocess.run(
        [sys.executable, "-c", asking],
        start_new_session=True, capture_output=True, text=True, timeout=HANG_GUARD, check=True,
    )  # fmt: skip
    assert done.stdout == "None\n"
    assert callable(typed_at)
