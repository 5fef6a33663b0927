"""Reading real processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rootsd.core.guard import Lineage, LineageCompleteness
from rootsd.system import process_tree as module
from rootsd.system.process_tree import ProcessReader, ReadBudget, lineages

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.needs("linux")
def test_a_process_and_its_ancestors(tmp_path: Path) -> None:
    program = tmp_path / "my agent"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [program, "-c", WAIT, "word"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "MARK": "1", "EMPTY": "", "OTHER": "x"},
    ) as started:  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        markers = ("MARK", "MARK=1", "MARK=2", "EMPTY", "OTHER=1", "ABSENT")
        line = lineages([started.pid], markers)[started.pid].processes
        again = {
            pid: seen.processes for pid, seen in lineages([started.pid, os.getpid()], ()).items()
        }
        started.stdin.close()
    first, second = line[:2]
    assert (first.pid, first.parent, second.pid) == (started.pid, os.getpid(), os.getpid())
    assert first.name == b"my agent"
    assert first.arguments == (os.fsencode(program), b"-c", WAIT.encode(), b"word")
    assert first.markers == {"MARK", "MARK=1"}
    assert first.started >= second.started
    assert 1 not in {process.pid for process in line}
    assert again[started.pid][1:] == again[os.getpid()]


@pytest.mark.needs("linux")
def test_a_terminal_is_reported() -> None:
    pid, terminal = pty.fork()
    if not pid:
        # Closing the terminal ends this process with SIGHUP, or fails the read if that is ignored.
        with suppress(OSError):
            os.write(1, b"ready")
            os.read(0, 1)
        os._exit(0)
    try:
        assert os.read(terminal, 5) == b"ready"
        assert lineages([pid], ())[pid].processes[0].terminal != 0
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def test_an_ended_process_has_no_lineage() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert lineages([ended.pid], ("MARK",)) == {ended.pid: Lineage()}
    assert lineages([], ()) == {}


DEEP = """
import os, sys
depth = int(sys.argv[1])
while depth and not os.fork():
    depth -= 1
if depth:
    os.wait()
    os._exit(0)  # 260 interpreters that take themselves apart need seconds
else:
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.needs("linux")
def test_a_very_long_lineage_is_marked_as_incomplete() -> None:
    for depth, seen_as in ((20, LineageCompleteness.COMPLETE), (260, LineageCompleteness.CUT_OFF)):
        with subprocess.Popen(
            [sys.executable, "-c", DEEP, str(depth)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as started:
            assert started.stdin is not None
            assert started.stdout is not None
            deepest = int(started.stdout.readline())
            assert lineages([deepest], ("MARK",))[deepest].completeness is seen_as
            started.stdin.close()


@pytest.mark.needs("linux")
def test_an_environment_beyond_the_limit_is_marked_as_incomplete() -> None:
    large = {f"V{n:02}": "x" * 100_000 for n in range(12)}
    with subprocess.Popen(
        [sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={"EARLY": "1", **large, "MARK": "1"},
    ) as started:  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        cut = lineages([started.pid], ("EARLY", "MARK"))[started.pid]
        assert cut.completeness is LineageCompleteness.CUT_OFF
        assert cut.processes[0].markers == {"EARLY"}
        # If no variable is requested, none has to be read.
        assert lineages([started.pid], ())[started.pid].is_complete
        spent = ProcessReader(("EARLY",), ReadBudget(environments=0)).lineage(started.pid)
        assert spent.completeness is LineageCompleteness.CUT_OFF
        started.stdin.close()


def test_a_read_that_ran_out_of_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_TIMEOUT_S", -1.0)
    assert lineages([os.getpid()], ())[os.getpid()] == Lineage((), LineageCompleteness.LATE)
