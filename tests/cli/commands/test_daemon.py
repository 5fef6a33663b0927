"""`rootsd daemon`: runs the daemon, and reports to its starter when it is ready."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.core.errors import Busy
from rootsd.helper.client import Helper, UnavailableHelper
from rootsd.places.daemon_folders import Places
from support.terminal import HANG_GUARD, Shell


@pytest.fixture(autouse=True)
def no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail instead of forking pytest."""
    monkeypatch.setattr("rootsd.helper.client.start_helper", lambda: UnavailableHelper("a test"))


def test_it_runs_the_daemon_with_the_paths_of_this_environment(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, rootsd_dir: Path
) -> None:
    seen: list[tuple[bytes, int | None]] = []

    def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
        seen.append((places.config, ready_fd))
        return 0

    monkeypatch.setattr("rootsd.daemon.main.run", run)
    assert shell.run("daemon").status == 0
    assert shell.run("daemon", "--ready-fd", "9").status == 0
    assert seen == [(bytes(rootsd_dir / "config"), None), (bytes(rootsd_dir / "config"), 9)]


def test_an_error_goes_to_the_waiting_parent_and_to_the_log(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
        raise Busy("another rootsd is at work", "rootsd status")

    monkeypatch.setattr("rootsd.daemon.main.run", run)
    read, write = os.pipe()
    done = shell.run("daemon", "--ready-fd", str(write))
    with os.fdopen(read, "rb") as told:
        line = told.read()
    assert (done.status, done.out) == (75, "")
    assert done.err == "error: another rootsd is at work\n  try: rootsd status\n"
    assert line.startswith(b"error ")
    assert json.loads(line.removeprefix(b"error ")) == {
        "code": "busy", "message": "another rootsd is at work", "remedy": "rootsd status",
    }  # fmt: skip


def test_detached_it_continues_as_an_orphan() -> None:
    """The first process ends at once, and the second one writes to the pipe."""
    program = (
        "import os, sys\n"
        "from rootsd.daemon import main as daemon\n"
        "from rootsd.cli import main\n"
        "first = os.getpid()\n"
        "def run(places, *, helper, ready_fd):\n"
        "    os.write(ready_fd, b'%d %d' % (first, os.getpid()))\n"
        "    return 0\n"
        "daemon.run = run\n"
        "sys.exit(main.main(sys.argv[1:]))\n"
    )
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", program, "daemon", "--detach", "--ready-fd", str(write)],
        pass_fds=(write,),
    )
    os.close(write)
    with os.fdopen(read, "rb") as told:
        first, second = map(int, told.read().split())
    assert process.wait(HANG_GUARD) == 0
    assert first == process.pid != second
