"""The line of proc_pid_stat(5), whatever name a process gives itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rootsd.disk.process_stat import process_stats, read_process_stat

pytestmark = [pytest.mark.needs("linux")]


@pytest.mark.parametrize("name", [b"a b", b") Z 1 1", b"((", b"\xff"])
def test_a_name_cannot_forge_the_fields_after_it(name: bytes) -> None:
    with subprocess.Popen(
        ["sh", "-c", 'IFS= read -r n; printf %s "$n" > /proc/$$/comm; echo up; read x'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(name + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"up\n"
        seen = read_process_stat(b"/proc/%d/" % process.pid)
        assert (seen.name, seen.parent, seen.has_ended) == (name, os.getpid(), False)
        assert seen.key in {each.key for each in process_stats()}
        process.stdin.close()
        process.wait()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the moment of the end
        read_process_stat(b"/proc/%d/" % process.pid)


def test_a_process_that_nobody_has_reaped_has_ended() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert read_process_stat(b"/proc/%d/" % process.pid).has_ended
        assert Path(f"/proc/{process.pid}/stat").exists()
