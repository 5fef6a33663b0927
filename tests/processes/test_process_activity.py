"""Whether real programs are busy: they compute or wait."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rootsd.processes.activity import is_busy
from support.polling import until

COMPUTES_ON_DEMAND = """
import sys
for line in sys.stdin:
    while line == "on\\n":
        pass
"""
IN_A_THREAD = """
import sys, threading
def compute():
    for line in sys.stdin:
        while line == "on\\n":
            pass
thread = threading.Thread(target=compute)
thread.start()
thread.join()
"""
BY_A_CHILD = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {COMPUTES_ON_DEMAND!r}])
"""


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program, which ends with its input; it is killed where it does not heed that."""
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, bufsize=0, process_group=0) as process:
        try:
            yield process
        finally:
            subprocess.run(["kill", "-KILL", "--", f"-{process.pid}"], check=True)


def say(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)


@pytest.mark.needs("linux")
@pytest.mark.parametrize("program", [COMPUTES_ON_DEMAND, IN_A_THREAD, BY_A_CHILD])
def test_a_program_is_busy_while_it_computes_and_idle_while_it_waits(program: str) -> None:
    with running(program) as process:
        until(lambda: not is_busy(process.pid))
        say(process, b"off\n")
        until(lambda: not is_busy(process.pid))
        say(process, b"on\n")
        until(lambda: is_busy(process.pid))
        assert all(is_busy(process.pid) for _ in range(50)), "it never waits again"


@pytest.mark.needs("linux")
def test_an_idle_program_has_finished_its_input(tmp_path: Path) -> None:
    """A run proxy concludes this from observation alone, without a fixed wait."""
    program = """
import os, sys
for line in sys.stdin:
    sum(range(100_000))
    file = os.open(line[:-1], os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(file, b"x")
    os.fsync(file)
    os.close(file)
    os.write(1, b"done\\n")
"""
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as it:
        assert it.stdout is not None
        for _ in range(20):
            say(it, bytes(tmp_path / "file") + b"\n")
            until(lambda: not is_busy(it.pid))
            assert it.stdout.read(100) == b"done\n"
        assert it.stdin is not None
        it.stdin.close()


def test_an_ended_process_has_no_activity() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not is_busy(gone.pid)
