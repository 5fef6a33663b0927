"""Talk to a person on a terminal: read keys, lines, and the challenge word; draw progress.

A question takes a single key without Enter, or a line if the terminal cannot report single keys.
An answer must follow the question: input from before the question is dropped, until the terminal
is quiet. A burst of bytes, such as a paste or an arrow key, answers nothing. A slow line may
deliver a burst in parts, so a key is one only if nothing follows it at once.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self, TextIO

from rootsd.cli.text.phrases import shorten_home
from rootsd.cli.text.render import Flags
from rootsd.core.labels import safe_label

if TYPE_CHECKING:
    from rootsd.wire.scans import ScanProgressItem

_TERMINAL = "/dev/tty"


def typed_word() -> str | None:
    """Return the line that a person types on the controlling terminal; None without a terminal.

    The daemon has printed the challenge there and dropped earlier input. A background process
    whose starter has ended cannot read from its terminal (EIO in read(2)).
    """
    try:
        fd = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, "rb", buffering=0) as terminal:
            return terminal.readline().decode("utf-8", "replace").strip()
    except OSError:
        return None


_MAX_KEY_BYTES = 1024
# Between two bytes of a burst. A person who types fast needs more than 0.08 s for a key.
_QUIET_S = 0.05
_CTRL_D = "\x04"


class Keyboard:
    """The keys of standard input; questions go to standard error."""

    def is_there(self) -> bool:
        """Return whether a person can be asked: standard input and error are terminals."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def press(self, question: str) -> str:
        """Ask `question`, and return the key pressed or the line typed.

        Returns `q` at the end of input, and `?` for a burst of bytes.
        """
        if os.environ.get("TERM") == "dumb":
            return self._line(question)
        fd = sys.stdin.fileno()
        try:
            with _unbuffered_keys(fd):
                _ask(question)
                pressed = _read_burst(fd)
        except termios.error:
            return self._line(question)
        text = pressed.decode("utf-8", "replace")
        if not pressed or text == _CTRL_D:
            text = "q"
        elif len(text) != 1:
            text = "?"
        _print_prompt(f"{text}\n" if text.isprintable() else "\n")
        return text

    def line(self, question: str) -> str:
        """Ask `question`, and return the line typed; empty at the end of input."""
        _ask(question)
        return sys.stdin.readline().strip()

    def _line(self, question: str) -> str:
        _ask(question)
        try:
            typed = sys.stdin.readline()
        except OSError:  # as in `typed_word`
            return "q"
        return typed.strip() if typed else "q"


def _ask(question: str) -> None:
    """Print a question, and drop the input from before it.

    The last character comes after that, so an answer to the whole question is never dropped.
    """
    _print_prompt(question[:-1])
    drop_earlier_input()
    _print_prompt(question[-1:])


def drop_earlier_input() -> None:
    """Drop typed input until none has come for `_QUIET_S`: the rest of a paste may still arrive.

    What answers a question must not have been typed before it. `Keyboard` calls this itself.
    """
    with suppress(OSError, termios.error):
        fd = sys.stdin.fileno()
        termios.tcflush(fd, termios.TCIFLUSH)
        while select.select([fd], [], [], _QUIET_S)[0] and os.read(fd, _MAX_KEY_BYTES):
            pass
        termios.tcflush(fd, termios.TCIFLUSH)  # a part of a line is never ready to be read


def _read_burst(fd: int) -> bytes:
    """Wait for a key, and return it with the start of what follows within `_QUIET_S` each."""
    pressed = os.read(fd, _MAX_KEY_BYTES)
    more = pressed
    while more and select.select([fd], [], [], _QUIET_S)[0]:
        more = os.read(fd, _MAX_KEY_BYTES)
        pressed = (pressed + more)[:_MAX_KEY_BYTES]
    return pressed


def _print_prompt(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def _unbuffered_keys(fd: int) -> Iterator[None]:
    """Deliver keys as they are pressed, without an echo. ^C still interrupts."""
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


REDRAW_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A throttled line of progress on a terminal, redrawn in place and cleared at the end.

    If `stream` is None, nothing is drawn.
    """

    def __init__(
        self, stream: TextIO | None, width: int = 80, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._width = width
        self._clock = clock
        self._drawn_at: float | None = None

    @classmethod
    def for_flags(cls, flags: Flags) -> ProgressLine:
        """Return a line on stderr; without -q and --json, and only on a capable terminal."""
        wanted = not flags.quiet and not flags.json and os.environ.get("TERM") != "dumb"
        if not wanted or not sys.stderr.isatty():
            return cls(None)
        return cls(sys.stderr, os.get_terminal_size(sys.stderr.fileno()).columns or 80)

    def show(self, notice: ScanProgressItem) -> None:
        """Draw the progress, unless the line was drawn less than REDRAW_SECONDS ago."""
        now = self._clock()
        if self._stream is None or (
            self._drawn_at is not None and now - self._drawn_at < REDRAW_SECONDS
        ):
            return
        self._drawn_at = now
        counts = f"scanning: {notice['projects']:,} projects in {notice['folders']:,} folders"
        room = self._width - len(counts) - 3
        parent = safe_label(shorten_home(notice["parent"]), limit=max(room, 2))
        text = f"{counts}  {parent}" if room > len(parent) // 2 else counts
        self._stream.write(_CLEAR + text[: self._width - 1])
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None and self._drawn_at is not None:
            self._stream.write(_CLEAR)
            self._stream.flush()
