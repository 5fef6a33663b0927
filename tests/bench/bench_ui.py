"""`rootsd ui` with 5,000 projects: its start, the way of a command of another terminal to the
screen, its memory, and its idle CPU. Also the first question of `rootsd review`, and the lists
that the screen could be made of.

Run: make bench ARGS='-k bench_ui'
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import statistics
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from textual.app import App
from textual.widget import Widget
from textual.widgets import DataTable, OptionList

from bench.bench_memory import idling, settle
from bench.measuring import cpu_seconds, memory, percentile, table
from bench.running import Daemon, daemon
from rootsd.cli.ui.board import Board, PanelKind, ProjectRow
from rootsd.cli.ui.widgets import RowList
from rootsd.wire.follow import ProjectGroup
from support.live_daemon import followed
from support.sizes import Sizes

PROJECTS = 5_000
HANG_GUARD_S = 60
SIZE = (50, 200)
KEYS = 100
DOWN = b"\x1b[B"


class Terminal:
    """A terminal with a Python program on it, and everything that it has drawn."""

    def __init__(self, *words: str) -> None:
        self.fd, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, SIZE)
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, *words],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(theirs)
        self._drawn = b""

    def wait_for(self, pattern: str) -> float:
        """Read until a text that matches is drawn, and return the time then."""
        wanted, deadline = re.compile(pattern.encode()), time.perf_counter() + HANG_GUARD_S
        while (found := wanted.search(self._drawn)) is None:
            ready, _, _ = select.select([self.fd], [], [], deadline - time.perf_counter())
            assert ready, f"{pattern} was never drawn"
            self._drawn += os.read(self.fd, 1 << 16)
        self._drawn = self._drawn[found.end() :]
        return time.perf_counter()

    def press(self, key: bytes) -> None:
        """Type a key."""
        os.write(self.fd, key)

    def forget(self) -> None:
        """Read what is drawn until now."""
        while select.select([self.fd], [], [], 0.2)[0]:
            os.read(self.fd, 1 << 16)
        self._drawn = b""


@contextmanager
def screen(*words: str) -> Iterator[Terminal]:
    """Run the screen, or another command that ends at `q`."""
    terminal = Terminal("-m", "rootsd", *(words or ("ui",)))
    try:
        yield terminal
    finally:
        terminal.press(b"q")
        with suppress(OSError):  # EIO: the last writer has closed it
            while True:
                os.read(terminal.fd, 1 << 16)
        terminal.process.wait(HANG_GUARD_S)
        os.close(terminal.fd)


def test_the_screen(tmp_path: Path, sizes: Sizes) -> None:
    rounds = sizes.pick(test=5, check=20, soak=50)
    src = make_repositories(tmp_path / "src")
    with daemon(src) as running:
        starts = [start() for _ in range(rounds)]
        turns = [(first_question(), empty_python()) for _ in range(rounds)]
        with screen() as terminal:
            terminal.wait_for(f"Pending {PROJECTS:,}")
            settle(terminal.process.pid)
            terminal.forget()
            delays = [delay(running, terminal, src, number) for number in range(rounds * 4)]
            spent = scrolling(terminal)
            settle(terminal.process.pid)
            held = memory(terminal.process.pid)
            percent, spent_ms, woken = idling(terminal.process.pid, 30)
    table(
        f"The screen, {PROJECTS:,} projects, {SIZE[1]} x {SIZE[0]}, ms",
        ("", "median", "p90", "worst"),
        (
            ("start to the first list", *shares([first for first, _ in starts])),
            ("start to all projects", *shares([whole for _, whole in starts])),
            ("review, start to the first question", *shares([asked for asked, _ in turns])),
            ("python -c pass, in turns with review", *shares([none for _, none in turns])),
            ("command given to effect drawn", *shares([drawn for drawn, _ in delays])),
            ("of that, to the answer of the daemon", *shares([said for _, said in delays])),
            ("CPU of one line down", spent, "", ""),
        ),
    )
    table("Memory", ("", "RSS MB", "PSS MB"), [("rootsd ui", *held)])
    table("Idle for 30 s", ("CPU %", "CPU ms", "wake-ups"), [(percent, spent_ms, woken)])


def shares(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the 90th percentile, and the worst, in milliseconds."""
    return (
        statistics.median(values) * 1e3,
        percentile(values, 0.9) * 1e3,
        max(values) * 1e3,
    )


def start() -> tuple[float, float]:
    """Return the seconds from the start to the first list, and to the whole one."""
    with screen() as terminal:
        first = terminal.wait_for("Pending [1-9]") - terminal.begun
        return first, terminal.wait_for(f"Pending {PROJECTS:,}") - terminal.begun


def first_question() -> float:
    """Return the seconds from the start of a review to its first question."""
    with screen("review") as terminal:
        return terminal.wait_for(r"publish p\d+\? \[[^]]+\] ") - terminal.begun


def empty_python() -> float:
    """Return the seconds that Python takes to run nothing."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begun


def delay(running: Daemon, terminal: Terminal, src: Path, number: int) -> tuple[float, float]:
    """Return the seconds from an approval by another program to its effect on the screen, and
    those until the daemon had answered."""
    begun = time.perf_counter()
    running.ask(
        "decide", verb="approve", cwd="/", refs=[str(src / f"g{number % 50}" / f"p{number}")]
    )
    answered = time.perf_counter()
    drawn = terminal.wait_for(f"Roots {number + 1} ")
    terminal.forget()
    return drawn - begun, answered - begun


def scrolling(terminal: Terminal) -> float:
    """Return the milliseconds of CPU for one line down."""
    before = cpu_seconds(terminal.process.pid)
    for _ in range(KEYS):
        terminal.press(DOWN)
        os.read(terminal.fd, 1 << 16)
    terminal.forget()
    return (cpu_seconds(terminal.process.pid) - before) / KEYS * 1e3


def make_repositories(top: Path) -> Path:
    """Create repositories in fifty folders."""
    for number in range(PROJECTS):
        git = top / f"g{number % 50}" / f"p{number}" / ".git"
        for folder in ("objects", "refs"):
            (git / folder).mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text("[core]\n")
    return top


# Lists of Textual that could hold the rows


def test_the_lists() -> None:
    texts = [(f"p{number}", f"~/src/g{number % 50}/p{number}") for number in range(PROJECTS)]
    rows = [
        ProjectRow(ProjectGroup.PENDING, followed("pending", name, id=name, path=path)["item"])
        for name, path in texts
    ]

    listed = RowList(PanelKind.PENDING, Board().cells_of)
    options = OptionList(markup=False)
    cells: DataTable[str] = DataTable(cursor_type="row")

    def fill_cells() -> None:
        cells.add_columns("name", "path")
        cells.add_rows(texts)

    found = {
        "RowList": asyncio.run(cost(listed, lambda: listed.show(rows))),
        "OptionList": asyncio.run(
            cost(options, lambda: options.add_options([" ".join(text) for text in texts]))
        ),
        "DataTable": asyncio.run(cost(cells, fill_cells)),
    }
    table(
        f"{PROJECTS:,} rows, ms of CPU",
        ("", "fill, until drawn", "one line down"),
        ((name, *each) for name, each in found.items()),
    )


async def cost(widget: Widget, fill: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU milliseconds to fill a widget until it is drawn, and of one line down."""

    class Alone(App[None]):
        def compose(self) -> Iterator[Widget]:
            yield widget

    async with Alone().run_test(size=(80, 50)) as pilot:
        widget.focus()
        await pilot.pause()
        begun = time.process_time()
        fill()
        await pilot.pause()
        filled = time.process_time() - begun
        await pilot.press(*["down"] * KEYS)
        moved = time.process_time() - begun - filled
    return filled * 1e3, moved / KEYS * 1e3
