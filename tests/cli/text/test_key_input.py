"""Single keys on a real terminal: which input is a key, and which is a burst."""

from __future__ import annotations

import os
import pty
import sys
import termios

from rootsd.cli.text.terminal import Keyboard
from support.terminal import read_until

ASK = """
from rootsd.cli.text.terminal import Keyboard
keyboard = Keyboard()
print("there", keyboard.is_there(), flush=True)
while (key := keyboard.press("key? ")) != "0":
    print("got", repr(key), flush=True)
    print("line", repr(keyboard.line("name? ")), flush=True)
"""
PRESSED = {b"y": "y", b"\x1b[A": "?", b"yyy": "?", b"\x04": "q", b"\xc3\xa9": "\u00e9"}


def started(**variables: str) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update({"TERM": "xterm", **variables})
        os.execv(sys.executable, [sys.executable, "-c", ASK])  # noqa: S606
    return pid, terminal


def test_one_key_is_an_answer_and_pasted_input_is_not() -> None:
    pid, terminal = started()
    assert "there True" in read_until(terminal, "key? ")
    for pressed, got in PRESSED.items():
        os.write(terminal, pressed)
        assert f"got {got!r}" in read_until(terminal, "name? ")
        os.write(terminal, b" api \n")
        assert "line 'api'" in read_until(terminal, "key? ")
    os.write(terminal, b"0")
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)


def test_the_terminal_is_left_as_it_was_also_after_an_interrupt() -> None:
    pid, terminal = started()
    before = termios.tcgetattr(terminal)
    read_until(terminal, "key? ")
    os.write(terminal, b"\x03")
    read_until(terminal, "KeyboardInterrupt")
    assert termios.tcgetattr(terminal)[3] == before[3]
    os.waitpid(pid, 0)
    os.close(terminal)


def test_a_terminal_without_key_input_is_asked_for_a_line() -> None:
    pid, terminal = started(TERM="dumb")
    read_until(terminal, "key? ")
    os.write(terminal, b"y\n")
    assert "got 'y'" in read_until(terminal, "name? ")
    os.write(terminal, b"\x04")
    assert "line ''" in read_until(terminal, "key? ")
    os.write(terminal, b"0\n")
    os.waitpid(pid, 0)
    os.close(terminal)


def test_without_a_terminal_there_is_no_person() -> None:
    assert not Keyboard().is_there()
