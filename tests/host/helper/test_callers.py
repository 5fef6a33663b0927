"""The question about callers, through a real helper: nothing is lost on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.host.helper.callers import ask_lineages
from rootsd.host.lineage import lineages
from support.helping import real_helper

WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.needs("linux")
def test_what_the_helper_tells_is_what_is_seen(tmp_path: Path) -> None:
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
        told = ask_lineages(helper, pids, {"MARK=1"})
        assert told == lineages(pids, {"MARK=1"})
        assert told[started.pid][0].name == b"\xff-agent"
        assert told[pids[2]] == ()
        started.stdin.close()
