"""Single keys from the terminal that a command runs on: one word of a person at a time.

Where the terminal can tell keys as they are pressed no Enter is needed; else a line is read. What
was typed before the question is dropped, and so is what comes as a burst: a paste, or the bytes of
an arrow key, is no answer to a question that nobody has read.
"""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_BURST = 1024
_END = "\x04"  # ^D


class Keyboard:
    """The keys of standard input; questions go to standard error."""

    def is_there(self) -> bool:
        """Whether a person can be asked: both are a terminal."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def press(self, question: str) -> str:
        """The one key that is pressed, or what was typed in a line; `q` at the end of input, `?`
        for a burst of bytes."""
        if os.environ.get("TERM") == "dumb":
            return self._line(question)
        fd = sys.stdin.fileno()
        try:
            # Before the question: what is typed once it can be read counts.
            with _keys_at_once(fd):
                _ask(question)
                pressed = os.read(fd, _BURST)
        except termios.error:
            return self._line(question)
        text = pressed.decode("utf-8", "replace")
        if not pressed or text == _END:
            text = "q"
        elif len(text) != 1:
            text = "?"
        _ask(f"{text}\n" if text.isprintable() else "\n")
        return text

    def line(self, question: str) -> str:
        """A line that is typed; empty where there is none."""
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        _ask(question)
        return sys.stdin.readline().strip()

    def _line(self, question: str) -> str:
        _ask(question)
        typed = sys.stdin.readline()
        return typed.strip() if typed else "q"


def _ask(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def _keys_at_once(fd: int) -> Iterator[None]:
    """Keys come as they are pressed; ^C goes on to interrupt. What was typed before is dropped."""
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
