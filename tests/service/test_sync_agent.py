"""The launchd agent of `rootsd sync`: what its shell does, with a fake rootsd, on this system."""

from __future__ import annotations

import os
import plistlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rootsd.service import unit_files
from rootsd.service.start_record import StartPlan
from support.polling import until

HANG_GUARD = 60
FAKE = """#!{python}
import os, signal, sys
with open({log!r}, "a") as log:
    log.write(f"{{' '.join(sys.argv[1:])}} {{os.getpid()}}\\n")
if sys.argv[1:] == ["sync", "run"]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit({status}))
    print("ready", flush=True)
    signal.pause()
"""


@dataclass
class Agent:
    """A running agent, and what its fake rootsd was called with."""

    shell: subprocess.Popen[str]
    log: Path

    def runs(self) -> int:
        """Return the pid of the fake `rootsd sync run`, once it has its handler."""
        assert self.shell.stdout is not None
        assert self.shell.stdout.readline() == "ready\n"
        return int(self.calls()[0].rpartition(" ")[2])

    def calls(self) -> list[str]:
        """Return the calls with their pids."""
        return self.log.read_text().splitlines()

    def ended(self) -> tuple[int, list[str]]:
        """Wait for the end, and return the status and the calls."""
        status = self.shell.wait(HANG_GUARD)
        return status, [call.rpartition(" ")[0] for call in self.calls()]


@pytest.fixture
def status() -> int:
    """The status with which the fake ends after a signal."""
    return 0


@pytest.fixture
def agent(tmp_path: Path, status: int) -> Iterator[Agent]:
    program, log = tmp_path / "my 'tools' & $x" / "rootsd", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable, log=str(log), status=status))
    program.chmod(0o755)
    plan = StartPlan((), (), {}, tmp_path, tmp_path)
    settings = unit_files.UnitSettings(plan, program, writable=(), synced=tmp_path)
    text = unit_files.launchd_agents(settings)[unit_files.SYNC_PLIST]
    words = plistlib.loads(text.encode())["ProgramArguments"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as shell:
        try:
            yield Agent(shell, log)
        finally:
            shell.kill()


@pytest.mark.parametrize(
    ("number", "status", "ended"),
    [
        (signal.SIGTERM, 0, 0),
        (signal.SIGTERM, 3, 3),
        (signal.SIGKILL, 0, 128 + signal.SIGKILL),
    ],
)
def test_the_end_of_the_process_is_that_of_the_agent_and_the_grants_are_withdrawn(
    agent: Agent, number: signal.Signals, status: int, ended: int
) -> None:
    os.kill(agent.runs(), number)
    assert agent.ended() == (ended, ["sync run", "sync withdraw"])


@pytest.mark.parametrize("status", [0, 3])
def test_a_stopped_agent_ends_the_process_first(agent: Agent, status: int) -> None:
    """launchd sends the signal to the shell alone."""
    pid = agent.runs()
    agent.shell.terminate()
    until(lambda: not Path(f"/proc/{pid}").exists())
    assert agent.ended() == (status, ["sync run", "sync withdraw"])
