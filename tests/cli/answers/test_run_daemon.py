"""Running the daemon in this process, for a service unit or a starter."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rootsd.cli.answers import run_daemon
from rootsd.core.errors import Busy
from rootsd.helper.client import Helper, UnavailableHelper
from rootsd.places.daemon_folders import Places
from support.subprocesses import run_python


@pytest.fixture
def no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail instead of forking pytest."""
    monkeypatch.setattr("rootsd.helper.client.start_helper", lambda: UnavailableHelper("a test"))


@pytest.mark.usefixtures("no_fork")
@pytest.mark.parametrize(("words", "descriptor"), [((), None), (("--ready-fd", "9"), 9)])
def test_the_daemon_uses_the_folders_of_this_environment(
    monkeypatch: pytest.MonkeyPatch,
    rootsd_dir: Path,
    words: tuple[str, ...],
    descriptor: int | None,
) -> None:
    seen: list[tuple[bytes, int | None]] = []

    def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
        seen.append((places.config, ready_fd))
        return 4

    monkeypatch.setattr("rootsd.daemon.main.run", run)
    assert run_daemon.main(words) == 4
    assert seen == [(bytes(rootsd_dir / "config"), descriptor)]


@pytest.mark.usefixtures("no_fork")
def test_the_reason_of_a_failed_start_goes_to_the_waiting_parent_and_to_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
        raise Busy("another rootsd is at work", "rootsd status")

    monkeypatch.setattr("rootsd.daemon.main.run", run)
    read, write = os.pipe()
    assert run_daemon.main(["--ready-fd", str(write)]) == 75
    with os.fdopen(read, "rb") as told:
        line = told.read()
    assert json.loads(line.removeprefix(b"error "))["code"] == "busy"
    assert capsys.readouterr().err == "error: another rootsd is at work\n  try: rootsd status\n"


LAUNCHED = """
import sys
from rootsd.daemon import main as daemon
def run(places, *, helper, ready_fd):
    print(sorted({{'click', 'mcp', 'pygit2', 'ruamel'}} & sys.modules.keys()))
    return 0
daemon.run = run
sys.argv = ['rootsd', {words}]
from rootsd.__main__ import main
main()
"""


def test_the_daemon_starts_without_the_command_line_the_mcp_sdk_yaml_and_libgit2() -> None:
    told, complaints = run_python((), LAUNCHED.format(words="'daemon'"))
    assert (told, complaints) == ("[]\n", "")


def test_through_the_command_line_the_daemon_loads_click() -> None:
    told, complaints = run_python((), LAUNCHED.format(words="'-v', 'daemon'"))
    assert (told, complaints) == ("['click']\n", "")
