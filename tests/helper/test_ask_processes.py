"""The question about callers, through a real helper."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.core.processes import Lineage, LineageCompleteness
from rootsd.helper.processes import ProcessQuestion, ask_processes
from rootsd.processes.process_tree import lineages
from support.helper_process import real_helper

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.needs("linux")
def test_the_helpers_answer_equals_a_direct_read(tmp_path: Path) -> None:
    program = bytes(tmp_path) + b"/\xff-agent"
    os.symlink(sys.executable, program)
    with (
        real_helper() as helper,
        subprocess.Popen(
            [program, "-c", WAIT, "x"], executable=program, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "MARK": "1"},
        ) as started,
    ):  # fmt: skip
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        pids = [started.pid, os.getpid(), 2**22 + 1]
        callers, marks = (started.pid,), frozenset({"MARK=1"})
        told = ask_processes(helper, ProcessQuestion(callers, tuple(pids[1:]), marks)).lineages
        seen = lineages(pids[:1], {"MARK=1"}) | lineages(pids[1:], ())
        assert told == seen
        assert told[started.pid].processes[0].name == b"\xff-agent"
        assert told[started.pid].processes[0].markers == {"MARK=1"}
        assert told[pids[2]] == Lineage()
        bare = ask_processes(helper, ProcessQuestion(callers)).lineages[started.pid]
        assert bare.completeness is LineageCompleteness.LATE
        assert [each.key for each in bare.processes] == [
            each.key for each in told[started.pid].processes
        ]
        assert not any(each.markers or each.arguments for each in bare.processes)
        started.stdin.close()
