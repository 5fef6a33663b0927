"""The response to a challenge, typed on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from support.terminal import read_until

ASK = """
from rootsd.cli.text.terminal import typed_word
print("asking", flush=True)
print("got", repr(typed_word()), flush=True)
"""
PRESS = """
from rootsd.cli.text.terminal import Keyboard
print("asking", flush=True)
print("got", repr(Keyboard().press("Publish it? ")), flush=True)
"""
HANG_GUARD = 60


def test_the_word_is_read_from_the_terminal_and_not_from_standard_input() -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv(sys.executable, [sys.executable, "-c", ASK])  # noqa: S606
    read_until(terminal, "asking")
    os.write(terminal, b" bakedi \n")
    assert "got 'bakedi'" in read_until(terminal, "'\r\n")
    os.waitpid(pid, 0)
    os.close(terminal)


def test_without_a_terminal_there_is_no_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        start_new_session=True, capture_output=True, text=True, timeout=HANG_GUARD, check=True,
    )  # fmt: skip
    assert done.stdout == "asking\ngot None\n"


@pytest.mark.parametrize(("asks", "answer"), [(ASK, "None"), (PRESS, "'q'")])
def test_a_background_process_whose_starter_has_ended_gets_no_answer(
    asks: str, answer: str
) -> None:
    """The terminal has an owner in the foreground, so the kernel lets no orphan read (EIO)."""
    pid, terminal = pty.fork()
    if not pid:
        if not os.fork():  # the orphan, in a group of its own
            os.setpgid(0, 0)
            if os.fork():
                os._exit(0)
            program = f"try: exec({asks!r})\nfinally: print('the end', flush=True)"
            os.execv(sys.executable, [sys.executable, "-c", program])  # noqa: S606
        os.wait()
        os.read(0, 1)
        os._exit(0)
    assert f"got {answer}" in read_until(terminal, "the end")
    os.write(terminal, b"\n")
    os.waitpid(pid, 0)
    os.close(terminal)
