"""What is seen of real processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.host.lineage import lineages

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.needs("linux")
def test_a_process_and_those_above_it(tmp_path: Path) -> None:
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
        line = lineages([started.pid], markers)[started.pid]
        again = lineages([started.pid, os.getpid()], ())
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
def test_a_terminal_is_told() -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.write(1, b"ready")
        os.read(0, 1)
        os._exit(0)
    try:
        assert os.read(terminal, 5) == b"ready"
        assert lineages([pid], ())[pid][0].terminal != 0
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def test_who_is_gone_has_no_lineage() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert lineages([ended.pid], ("MARK",)) == {ended.pid: ()}
    assert lineages([], ()) == {}
