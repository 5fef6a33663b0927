"""What the front says about a wall: wrapped, once for a terminal, and not into a full screen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot, RemovalReason, RemovedRoot
from rootsd.wall.session.messages import ScreenUse, describe_gone, wrapped
from support.roots_publisher import RootsPublisher
from support.terminal_programs import SHELL, on_terminal

_DENIED = 'rootsd: live was denied; after an approval: cd "$PWD"'
_WORDS = st.sampled_from(["rootsd", "a", "(try --read ~/x)", "folder,", "closed:", "long" * 9])


@given(st.lists(_WORDS, min_size=1), st.sampled_from(["", "; try: rootsd why /a/b c"]),
       st.integers(20, 100))  # fmt: skip
def test_lines_fit_the_terminal_and_break_no_option_or_command(
    words: list[str], command: str, width: int
) -> None:
    text = " ".join(words) + command
    lines = wrapped(text, width)
    assert " ".join(line.strip() for line in lines) == text
    assert wrapped(text, 0) == [text]
    for whole in ("(try --read ~/x)", "rootsd why /a/b c"):
        assert sum(line.count(whole) for line in lines) == text.count(whole)
    for line in lines:
        rest = line.strip().removesuffix("rootsd why /a/b c")
        assert len(line) <= width or " " not in rest.replace("(try --read ~/x)", "").strip()


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("output", "is_free"),
    [
        (b"plain text", True),
        (b"\x1b[?1049h vim", False),
        (b"\x1b[?1049h vim \x1b[?1049l", True),
        (b"\x1b[?1049h \n\n \x1b[?25h\x1b[?1049l$ ", True),
        (b"\x1b[?25l spinner", False),
        (b"\x1b[?25l spinner \x1b[?25h\n", True),
        (b"\x1b[?47h\x1b[?25l\x1b[?25h", False),
        (b"\x1b[1mbold\x1b[0m", True),
        (b"cut \x1b", False),
        (b"cut \x1b[38;5", False),
        (b"title \x1b]0;name", False),
        (b"title \x1b]0;name\x07", True),
        (b"title \x1b]0;name\x1b\\", True),
        (b"keypad \x1b=", True),
    ],
)
def test_a_program_that_draws_the_screen_is_left_alone(
    output: bytes, is_free: bool, size: int
) -> None:
    screen = ScreenUse()
    for start in range(0, len(output), size):
        screen.take(output[start : start + size])
    assert screen.is_free is is_free


def test_the_line_that_a_program_has_begun_follows_again() -> None:
    screen = ScreenUse()
    assert screen.between(["told"]) == b"told\r\n"
    screen.take(b"first\n\x1b[1m$ \x1b[0mls")
    assert screen.between(["told"]) == b"\r\ntold\r\n\x1b[1m$ \x1b[0mls"
    screen.take(b"\x1b[K\x1b[C\x1b[2P\x1b[?2004h\x1b]0;title\x07\x1b(B\x1b[m")
    assert screen.between([]).endswith(b"\x1b(B\x1b[m"), "what shells print"
    screen.take(b"x" * 10_000)
    assert screen.between(["told"]) == b"\r\ntold\r\n", "too long to show again"


@pytest.mark.parametrize("drawn", [b"\x1b[30;1H:q", b"\x1b[?1l\x1b>", b"\x1b[A", b"\x1b[?1049l"])
def test_what_was_drawn_elsewhere_on_the_screen_is_not_drawn_again(drawn: bytes) -> None:
    screen = ScreenUse()
    screen.take(b"\x1b[?1049h" + drawn + b"\x1b[?1049l")
    assert screen.is_free
    assert screen.between(["told"]) == b"\r\ntold\r\n"


def test_roots_with_the_same_reason_share_a_line() -> None:
    gone = [RemovedRoot(b"/r", f"r{number}", RemovalReason.DENIED) for number in range(6)]
    ended = RemovedRoot(b"/e\x1b", "", RemovalReason.ENDED)
    assert describe_gone([*gone, ended]) == [
        "r0, r1, r2, r3 and 2 more were denied",
        "/e\\u{1b} was closed at the end of the approval",
    ]


class Terminal:
    """A shell on a terminal, in the folder `live`."""

    def __init__(self, folder: Path) -> None:
        self.shell = on_terminal(SHELL, folder / "live", {"PS1": "out$ "})
        self.shell.expect_exact("out$ ")

    def confine(
        self, *flags: str, program: str = "env PS1='in''$ ' bash --norc --noediting -i"
    ) -> None:
        words = [sys.executable, "-m", "rootsd", "confine", "--all", *flags, "--", program]
        self.shell.sendline(" ".join(words))

    def said(self, end: str = "out$ ") -> str:
        """Return what the terminal shows until `end`."""
        self.shell.expect_exact(end)
        return str(self.shell.before)


@pytest.fixture
def live(tmp_path: Path, publisher: RootsPublisher) -> ConfinedRoot:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "file").write_text("text\n")
    root = ConfinedRoot(os.fsencode(tmp_path / "live"), Access.READ_WRITE, name="live")
    publisher.publish(root)
    return root


@pytest.fixture
def terminal(live: ConfinedRoot, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.shell.close(force=True)


@pytest.mark.needs("wall")
def test_a_revoke_and_an_approval_say_how_to_go_on(
    publisher: RootsPublisher, live: ConfinedRoot, tmp_path: Path, terminal: Terminal
) -> None:
    other = live._replace(path=os.fsencode(tmp_path / "other"), name="other")
    (tmp_path / "other").mkdir()
    publisher.publish(live, other)
    terminal.confine()
    terminal.said("in$ ")
    terminal.shell.send("echo typed-")
    terminal.said("typed-")
    publisher.publish(other)
    assert f"\r\n{_DENIED}\r\n" in terminal.said("in$ echo typed-"), "the prompt follows"
    terminal.shell.sendline("on")
    terminal.said("in$ ")
    publisher.publish(live, other)
    terminal.said('live is open; to work in it: cd "$PWD"\r\nin$ ')
    terminal.shell.sendline('cd "$PWD"; cat file')
    terminal.said("text")
    terminal.said("in$ ")
    publisher.publish_and_wait(live)
    terminal.said("other was denied")
    publisher.publish_and_wait(live, other)
    publisher.publish_and_wait()
    assert "other is open" not in terminal.said("live, other were denied"), (
        "no program starts there"
    )


@pytest.mark.needs("wall")
@pytest.mark.parametrize("ends", ["\\033[?1049l", ""])
def test_a_line_waits_for_the_end_of_a_full_screen(
    publisher: RootsPublisher, terminal: Terminal, live: ConfinedRoot, ends: str
) -> None:
    draw = f"printf '\\033[?1049hfull'; read _; echo drawn; printf '{ends}'; echo the end\n"
    Path(os.fsdecode(live.path), "draw").write_text(draw)
    terminal.confine(program="sh draw")
    terminal.said("full")
    publisher.publish_and_wait()
    terminal.shell.sendline("")
    assert _DENIED not in terminal.said("drawn")
    assert _DENIED in terminal.said()


@pytest.mark.needs("wall")
def test_quiet_prints_errors_alone(
    publisher: RootsPublisher, live: ConfinedRoot, terminal: Terminal
) -> None:
    for flag in ("--quiet", "-q", "-v -q"):
        publisher.publish(live)
        terminal.confine(flag, program="cat file -")
        assert "rootsd confine" not in terminal.said("text").partition("\n")[2]
        publisher.publish_and_wait()
        terminal.shell.sendeof()
        assert "rootsd" not in terminal.said()
    terminal.confine("-q", program="no-such-program")
    assert "no-such-program is not installed" in terminal.said()


@pytest.mark.needs("wall")
def test_a_terminal_is_told_once_what_is_open(
    publisher: RootsPublisher, terminal: Terminal, tmp_path: Path
) -> None:
    told = tmp_path / "rootsd" / "run" / "told"
    told.mkdir()
    (told / "1-1").touch()
    terminal.confine(program="true")
    first = terminal.said()
    assert ("the network is on" in first, "closed:" in first) == (True, True)
    [kept] = told.iterdir()
    assert kept.name.startswith(f"{terminal.shell.pid}-"), "that of an ended session is gone"
    terminal.confine(program="true")
    assert "rootsd confine:" not in terminal.said().partition("\n")[2]
    terminal.confine("--no-protect", program="true")
    said = terminal.said()
    assert ("--no-protect: files" in said, "the network" in said) == (True, False)
    with _another_terminal(tmp_path) as other:
        other.confine(program="true")
        assert "the network is on" in other.said()


@contextmanager
def _another_terminal(folder: Path) -> Iterator[Terminal]:
    terminal = Terminal(folder)
    yield terminal
    terminal.shell.close(force=True)


@pytest.mark.needs("wall")
def test_without_a_terminal_everything_is_said_on_standard_error(
    publisher: RootsPublisher, live: ConfinedRoot, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rootsd", "confine", "--all", "--", "sh", "-c", "echo on; cat"],
        cwd=tmp_path / "live", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as front:  # fmt: skip
        assert front.stdout is not None
        assert front.stderr is not None
        assert front.stdout.readline() == "on\n"
        publisher.publish_and_wait()
        assert any(line == f"{_DENIED}\n" for line in front.stderr)
