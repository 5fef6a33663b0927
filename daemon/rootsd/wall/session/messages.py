"""Say on the user's terminal what happens to a wall: briefly, and once.

Lines end at the width of the terminal, but never inside a command that a person may copy. What the
start says about open and closed parts is printed once for each login of a terminal: a file in the
runtime folder keeps it, named after the session of the shell. The start of a wall removes the
files of sessions that have ended.

While a program draws the whole screen, a line of ours would disturb it. `ScreenUse` tells when.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from rootsd.core.errors import RootsdError
from rootsd.core.labels import first_of, home_label, safe_label
from rootsd.core.mount_plan import RemovalReason, RemovedRoot
from rootsd.core.paths import contains
from rootsd.disk.process_stat import read_process_stat
from rootsd.places.runtime_dir import find_runtime_dir, home_folder
from rootsd.wall.kernel.orders import RootNews
from rootsd.wall.system_calls import closing

PREFIX = "rootsd confine: "
_NEWS_PREFIX = "rootsd: "
_AGAIN = 'cd "$PWD"'
MAX_ROOTS = 4  # in a message
_USUAL_WIDTH = 80
_INDENT = "  "
_TOLD = b"/told"
_MAX_TOLD_BYTES = 1 << 16
_MAX_LINE_BYTES = 4096
_FINAL = frozenset(range(0x40, 0x7F))  # the bytes that end a control sequence (ECMA-48)
_REASONS = {
    RemovalReason.DENIED: "denied",
    RemovalReason.ENDED: "closed at the end of the approval",
    RemovalReason.LAPSED: "closed, because the approval lapsed",
    RemovalReason.UNDECIDED: "closed, because nothing approves it now",
    RemovalReason.MISSING: "removed or moved",
    RemovalReason.OUT_OF_SCOPE: "taken out of the scope of this session",
}


def print_line(text: str) -> None:
    """Print a line of the front on standard error, wrapped on a terminal."""
    if not text.isprintable():  # it may name a path, which a program in a root has chosen
        text = safe_label(text, limit=None)
    print_lines([PREFIX + text])


def print_lines(texts: Iterable[str]) -> None:
    """Print safe lines on standard error, wrapped on a terminal."""
    width = width_of(2)
    for line in [each for text in texts for each in wrapped(text, width)]:
        sys.stderr.write(f"{line}\n")


def width_of(fd: int) -> int:
    """Return the width of a terminal, or 0 if `fd` is none."""
    try:
        return os.get_terminal_size(fd).columns or _USUAL_WIDTH
    except OSError:
        return 0


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a sentence. Without a `width`, it is one line."""
    lines = [""]
    for part in _unbroken(text):
        if not lines[-1]:
            lines[-1] = part
        elif not width or len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(_INDENT + part)
    return lines


def _unbroken(text: str) -> Iterator[str]:
    """Yield what stays on one line: words, what is in parentheses, and a command at the end."""
    _, semicolon, last = text.rpartition("; ")
    _, colon, command = last.partition(": ")
    if not (semicolon and colon):
        command = ""
    part = ""
    for word in text.removesuffix(f" {command}").split(" "):
        part = f"{part} {word}" if part else word
        if part.count("(") <= part.count(")"):
            yield part
            part = ""
    yield from filter(None, (part, command))


def describe_gone(gone: Sequence[RemovedRoot], advice: str = "") -> list[str]:
    """Return a line for each reason why roots are gone."""
    by_reason: dict[RemovalReason, list[str]] = {}
    for each in gone:
        shown = safe_label(each.name or each.path, limit=None)
        by_reason.setdefault(each.why, []).append(shown)
    return [
        f"{first_of(names, MAX_ROOTS)} {_were(names)} {_REASONS[why]}{advice}"
        for why, names in by_reason.items()
    ]


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def describe_news(news: RootNews, start: bytes | None) -> list[str]:
    """Return the lines about other roots, for a program that started in the folder `start`.

    The kernel cannot give a working directory back, so they say how to get there again.
    """
    lines = describe_gone(news.gone, f"; after an approval: {_AGAIN}")
    for path in news.new:
        if start is not None and contains(path, start):
            lines.append(f"{shorten_home(path)} is open; to work in it: {_AGAIN}")
    return [_NEWS_PREFIX + line for line in lines]


def shorten_home(path: bytes) -> str:
    """Return a path, safe to show, with `~` for the home folder."""
    return home_label(path, os.path.realpath(home_folder()))


def untold(lines: Iterable[str]) -> list[str]:
    """Return those lines that this terminal has not shown yet, and remember them."""
    wanted = list(lines)
    with suppress(OSError, RootsdError):
        if os.isatty(2):
            own, folder = _session_name(), find_runtime_dir().path + _TOLD
            os.makedirs(folder, 0o700, exist_ok=True)
            _forget_ended(folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            with closing(os.open(folder + b"/" + own, flags, 0o600)) as file:
                told = os.read(file, _MAX_TOLD_BYTES).decode(errors="replace").split("\n")
                wanted = [line for line in wanted if line not in told]
                os.write(file, "".join(f"{line}\n" for line in wanted).encode())
    return wanted


def _session_name() -> bytes:
    """Return the name of the file of this session. No later one has it. Raises OSError."""
    return b"%d-%d" % read_process_stat(b"/proc/%d/" % os.getsid(0)).key


def _forget_ended(folder: bytes) -> None:
    """Remove the files of sessions that have ended. Raises OSError."""
    for name in os.listdir(folder):
        pid, _, _ = name.partition(b"-")
        try:
            found = b"%d-%d" % read_process_stat(b"/proc/" + pid + b"/").key
        except OSError:
            found = b""
        if found != name:
            os.unlink(folder + b"/" + name)


class ScreenUse:
    """What a program does with the screen, as far as its output tells."""

    # What switches to another screen or hides the cursor, and what ends that.
    _MODES = (
        (b"\x1b[?1049h", b"\x1b[?1049l"),
        (b"\x1b[?1047h", b"\x1b[?1047l"),
        (b"\x1b[?47h", b"\x1b[?47l"),
        (b"\x1b[?25l", b"\x1b[?25h"),
    )

    def __init__(self) -> None:
        self._line = b""  # what the program has written since the last end of a line
        self._taken: set[bytes] = set()

    def take(self, output: bytes) -> None:
        """Take the next output of the program."""
        text = self._line + output
        for begin, end in self._MODES:
            began, ended = text.rfind(begin), text.rfind(end)
            if began > ended:
                self._taken.add(begin)
            elif ended >= 0:
                self._taken.discard(begin)
        self._line = text[text.rfind(b"\n") + 1 :][-_MAX_LINE_BYTES:]

    @property
    def is_free(self) -> bool:
        """Whether a line may be printed now: not in another screen, nor in a sequence."""
        sequence = self._line[self._line.rfind(b"\x1b") :] if b"\x1b" in self._line else b""
        return not self._taken and not _is_cut(sequence)

    def between(self, lines: Iterable[str]) -> bytes:
        """Return what prints `lines`, and then the line that the program has begun again.

        A shell does not know that its prompt is gone.
        """
        text = "".join(f"{line}\r\n" for line in lines).encode()
        if not self._line:
            return text
        is_whole = len(self._line) < _MAX_LINE_BYTES and _stays_in_line(self._line)
        return b"\r\n" + text + (self._line if is_whole else b"")


def _stays_in_line(line: bytes) -> bool:
    """Return whether a line can be printed again: it has text, colors, a title, and edits."""
    for sequence in line.split(b"\x1b")[1:]:
        end = next((byte for byte in sequence[1:] if byte in _FINAL), 0)
        is_edit = sequence[:1] == b"[" and end in b"mKCDP@"
        if not (is_edit or sequence.startswith((b"]", b"(", b"[?2004"))):
            return False
    return True


def _is_cut(sequence: bytes) -> bool:
    """Return whether an escape sequence has begun and not ended."""
    match sequence[1:2]:
        case b"":
            return bool(sequence)
        case b"[":
            return _FINAL.isdisjoint(sequence[2:])
        case b"]" | b"P" | b"_" | b"^" | b"X":
            return b"\x07" not in sequence
        case _:
            return False
