"""The programs behind a wall wait while no daemon answers, and lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from rootsd.core.access import Access
from rootsd.core.mount_plan import ConfinedRoot
from support.polling import until
from support.roots_publisher import RootsPublisher
from support.terminal_programs import SHELL, on_terminal
from support.wall_kills import programs_behind_wall

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 60
_WAITS, _CONTINUES = "no daemon answers, so victim waits; try: rootsd up", "victim continues"
_FRONT = """
import sys
from rootsd.wall.session import main, view_feed
view_feed.GRACE_S = 0.1
LEAK
sys.exit(main.main(sys.argv[1:]))
"""
_CONTINUE_FIRST = """
def show(self, show=view_feed.ViewFeed._show):
    self._programs.resume()
    import select; select.select([], [], [], 0.3)
    show(self)
view_feed.ViewFeed._show = show
"""
# Looks at its folder and at the other root all the time, and prints what changes.
_PROBE = """
import os, select, sys
shown, failed = None, 0
while True:
    try:
        os.listdir("."), open("file").close()
    except OSError:
        failed += 1
    try:
        with open(sys.argv[1]) as file:
            now = file.read()
    except OSError:
        now = "gone"
    if (failed, now) != shown:
        shown = failed, now
        print(*shown, flush=True)
    select.select([], [], [], 0.001)
"""


@pytest.fixture
def kept(tmp_path: Path) -> ConfinedRoot:
    return _root(tmp_path / "kept")


@pytest.fixture
def other(tmp_path: Path) -> ConfinedRoot:
    return _root(tmp_path / "other")


def _root(path: Path) -> ConfinedRoot:
    path.mkdir()
    (path / "file").write_text("before")
    return ConfinedRoot(os.fsencode(path), Access.READ_WRITE, name=path.name)


def _replace(path: Path, text: str) -> None:
    """Change a file. The program may have the earlier one open."""
    path.with_name("new").write_text(text)
    path.with_name("new").replace(path)


class Probe:
    """The probe behind a wall, in the root `kept`."""

    def __init__(self, folder: Path, flags: tuple[str, ...], leak: str) -> None:
        front = [sys.executable, "-c", _FRONT.replace("LEAK", leak), "--name", "victim", *flags]
        program = [sys.executable, "-I", "-S", "-c", _PROBE, str(folder / "other" / "file")]
        self._front = subprocess.Popen(
            [*front, "--all", "--", *program], cwd=folder / "kept", text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self._front.stdout is not None
        return self._front.stdout.readline().strip()

    def until_told(self, text: str) -> None:
        """Wait until the front says `text`."""
        assert self._front.stderr is not None
        assert any(text in line for line in self._front.stderr), text

    def states(self) -> set[str]:
        """Return the states of the programs behind the wall."""
        return programs_behind_wall(self._front.pid)

    def continue_all(self) -> None:
        """Continue the programs from outside, as `kill -CONT` does."""
        for child in psutil.Process(self._front.pid).children(recursive=True):
            child.resume()

    def close(self) -> str:
        """End it, and return the rest of what it printed."""
        self._front.kill()
        rest, _ = self._front.communicate(timeout=_HANG_GUARD_S)
        return rest


@contextmanager
def _probe(tmp_path: Path, *flags: str, leak: str = "") -> Iterator[Probe]:
    probe = Probe(tmp_path, flags, leak)
    try:
        yield probe
    finally:
        probe.close()


ENGINES = [(), ("--static",)]


@pytest.mark.parametrize("flags", ENGINES)
def test_a_program_waits_in_its_folder_until_a_daemon_is_back(
    publisher: RootsPublisher,
    kept: ConfinedRoot,
    other: ConfinedRoot,
    tmp_path: Path,
    flags: tuple[str, ...],
) -> None:
    publisher.publish(kept, other)
    with _probe(tmp_path, *flags) as probe:
        assert probe.line() == "0 before"
        publisher.close()
        probe.until_told(_WAITS)
        until(lambda: probe.states() == {psutil.STATUS_STOPPED})
        _replace(tmp_path / "other" / "file", "after")
        with RootsPublisher(publisher.rootsd_dir, first=(kept, other)):
            probe.until_told(_CONTINUES)
            assert probe.line() == "0 after"
            _replace(tmp_path / "other" / "file", "later")
            assert probe.line() == "0 later", "nothing has failed in between"


def _what_is_read_after_a_smaller_view(
    publisher: RootsPublisher, kept: ConfinedRoot, other: ConfinedRoot, tmp_path: Path, leak: str
) -> str:
    publisher.publish(kept, other)
    with _probe(tmp_path, leak=leak) as probe:
        assert probe.line() == "0 before"
        publisher.close()
        probe.until_told(_WAITS)
        until(lambda: probe.states() == {psutil.STATUS_STOPPED})
        _replace(tmp_path / "other" / "file", "secret")
        with RootsPublisher(publisher.rootsd_dir, first=(kept,)):
            return probe.line()


def test_a_smaller_view_is_in_force_before_the_program_continues(
    publisher: RootsPublisher, kept: ConfinedRoot, other: ConfinedRoot, tmp_path: Path
) -> None:
    read = _what_is_read_after_a_smaller_view(publisher, kept, other, tmp_path, "")
    assert read == "0 gone"


def test_control_a_program_that_continues_too_early_is_seen(
    publisher: RootsPublisher, kept: ConfinedRoot, other: ConfinedRoot, tmp_path: Path
) -> None:
    read = _what_is_read_after_a_smaller_view(publisher, kept, other, tmp_path, _CONTINUE_FIRST)
    assert read == "0 secret"


def test_a_program_that_was_continued_from_outside_is_stopped_again(
    publisher: RootsPublisher, kept: ConfinedRoot, other: ConfinedRoot, tmp_path: Path
) -> None:
    publisher.publish(kept, other)
    with _probe(tmp_path, leak="view_feed._LOOK_AGAIN_S = 0.1") as probe:
        assert probe.line() == "0 before"
        publisher.close()
        until(lambda: probe.states() == {psutil.STATUS_STOPPED})
        probe.continue_all()
        until(lambda: probe.states() == {psutil.STATUS_STOPPED})


class Terminal:
    """A shell behind the wall, on a terminal of a shell outside."""

    def __init__(self, folder: Path) -> None:
        front = folder / "front.py"
        front.write_text(_FRONT.replace("LEAK", "view_feed.GRACE_S = 1.0"))
        self.shell = on_terminal(SHELL, folder / "kept", {"TERM": "dumb", "PS1": "out$ "})
        self.shell.expect_exact("out$ ")
        inside = "env PS1='in''$ ' bash --norc --noediting -i"
        self.shell.sendline(f"{sys.executable} {front} --name victim --all -- {inside}")
        self.shell.expect_exact("in$ ")

    def state_of(self, seconds: str) -> str:
        """Return the state of the `sleep` for this time, which runs behind the wall."""
        for process in psutil.Process(self.shell.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.cmdline() == ["sleep", seconds]:
                    return process.status()
        return ""


@pytest.fixture
def terminal(publisher: RootsPublisher, kept: ConfinedRoot, tmp_path: Path) -> Iterator[Terminal]:
    publisher.publish(kept)
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.shell.close(force=True)


def test_ctrl_c_works_while_the_program_waits(
    publisher: RootsPublisher, terminal: Terminal
) -> None:
    shell = terminal.shell
    shell.sendline("sleep 1000")
    shell.expect_exact("sleep 1000\r\n")
    publisher.close()
    shell.expect_exact(f"rootsd confine: {_WAITS}\r\n")
    shell.send("\x03")
    shell.expect_exact("in$ ")
    shell.sendline("exit 3")
    shell.expect_exact("out$ ")
    shell.sendline("echo status-$?")
    shell.expect_exact("status-3")


def test_ctrl_z_gives_the_shell_back_while_the_program_waits(
    publisher: RootsPublisher, terminal: Terminal, kept: ConfinedRoot
) -> None:
    """The program that the user has stopped waits for `fg`, also when a daemon is back."""
    shell = terminal.shell
    shell.sendline("sleep 1001 & exec sleep 1002")
    shell.expect_exact("sleep 1002\r\n")
    publisher.close()
    shell.expect_exact(f"rootsd confine: {_WAITS}\r\n")
    shell.send("\x1a")
    shell.expect_exact("Stopped")
    shell.sendline("echo outside-$((1+1))")
    shell.expect_exact("outside-2")
    with RootsPublisher(publisher.rootsd_dir, first=(kept,)) as second:
        with second.reported:
            assert second.reported.wait_for(lambda: bool(second.reports), _HANG_GUARD_S)
        until(lambda: terminal.state_of("1001") == psutil.STATUS_SLEEPING)
        assert terminal.state_of("1002") == psutil.STATUS_STOPPED
        shell.sendline("fg")
        until(lambda: terminal.state_of("1002") == psutil.STATUS_SLEEPING)
        shell.send("\x03")
        shell.expect_exact("out$ ")
        shell.sendline("echo status-$?")
        shell.expect_exact("status-130")


def test_stopped_jobs_stay_stopped_and_shells_see_nothing(
    publisher: RootsPublisher, terminal: Terminal, kept: ConfinedRoot
) -> None:
    shell = terminal.shell
    shell.sendline("sleep 1003 & sleep 1004")
    shell.expect_exact("sleep 1004\r\n")
    shell.send("\x1a")
    shell.expect_exact("Stopped")
    shell.expect_exact("in$ ")
    publisher.close()
    shell.expect_exact(f"rootsd confine: {_WAITS}\r\n")
    until(lambda: terminal.state_of("1003") == psutil.STATUS_STOPPED)
    shell.send("jo")  # it waits, too
    with RootsPublisher(publisher.rootsd_dir, first=(kept,)):
        shell.expect_exact(f"rootsd confine: {_CONTINUES}\r\n")
        shell.sendline("bs; echo end-$((1+1))")
        shell.expect_exact("end-2")
        jobs = [line for line in (shell.before or "").splitlines() if "sleep" in line]
        assert ["Running" in jobs[0], "Stopped" in jobs[1]] == [True, True]
        assert terminal.state_of("1003") == psutil.STATUS_SLEEPING
        assert terminal.state_of("1004") == psutil.STATUS_STOPPED
