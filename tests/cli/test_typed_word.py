"""The response to a challenge, typed on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

ASK = """
from rootsd.cli.terminal import typed_word
print("asking", flush=True)
print("got", repr(typed_word()), flush=True)
"""
HANG_GUARD = 60


def _until(terminal: int, end: str) -> str:
    shown = ""
    while end not in shown:
        shown += os.read(terminal, 4096).decode()
    return shown


def test_the_word_is_read_from_the_terminal_and_not_from_standard_input() -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(sys.executable, [sys.executable, "-c", ASK])  # noqa: S606
    _until(terminal, "asking")
    os.write(terminal, b" bakedi \n")
    assert "got 'bakedi'" in _until(terminal, "'\r\n")
    os.waitpid(pid, 0)
    os.close(terminal)


def test_without_a_terminal_there_is_no_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        start_new_session=True, capture_output=True, text=True, timeout=HANG_GUARD, check=True,
    )  # fmt: skip
    assert done.stdout == "asking\ngot None\n"
