"""Finding and starting the user's service, with fake service managers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rootsd.service import detect
from rootsd.service import manager as host_manager
from rootsd.service.launcher import StartFailed


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder at the usual places, and a runtime folder with a user manager in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("HOME", str(home))
    runtime = tmp_path / "run"
    monkeypatch.setattr(host_manager, "USER_RUNTIME", runtime)
    (runtime / str(os.getuid()) / "systemd").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return home


def manager(tmp_path: Path, name: str, ending: str = "exit 0") -> Path:
    """A service manager called `name`; returns where it writes its arguments."""
    told = tmp_path / "told"
    program = tmp_path / name
    program.write_text(f'#!/bin/sh\necho "$@" "$XDG_RUNTIME_DIR" >>{told}\n{ending}\n')
    program.chmod(0o755)
    return told


def unit(config: Path) -> None:
    (config / "systemd" / "user").mkdir(parents=True)
    (config / "systemd" / "user" / "rootsd.service").touch()


def test_an_installed_unit_is_started_where_the_last_up_found_it(
    home: Path, tmp_path: Path
) -> None:
    told = manager(tmp_path, "systemctl")
    unit(tmp_path / "elsewhere")
    assert not detect.start_service({})
    assert detect.start_service({"XDG_CONFIG_HOME": str(tmp_path / "elsewhere")})
    assert told.read_text().count("start") == 1
    unit(home / ".config")
    assert detect.start_service({})
    runtime = tmp_path / "run" / str(os.getuid())
    assert told.read_text().splitlines()[-1] == f"--user start rootsd.service {runtime}"


def test_with_rootsd_dir_or_without_a_user_manager_there_is_no_service(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager(tmp_path, "systemctl")
    unit(home / ".config")
    with monkeypatch.context() as shell:
        shell.setenv("ROOTSD_DIR", str(tmp_path))
        assert not detect.start_service({})
    assert detect.start_service({}), "the control"
    (tmp_path / "run" / str(os.getuid()) / "systemd").rmdir()
    assert not detect.start_service({})


def test_a_service_that_fails_to_start_gives_its_reason(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit(home / ".config")
    manager(tmp_path, "systemctl", "[ $2 = show ] || { echo Job failed. >&2; exit 1; }")
    with pytest.raises(StartFailed, match="Job failed"):
        detect.start_service({})
    (tmp_path / "systemctl").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartFailed, match="systemctl"):
        detect.start_service({})


def test_on_a_mac_the_agent_is_started(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    told = manager(tmp_path, "launchctl")
    assert not detect.start_service({})
    agents = home / "Library" / "LaunchAgents"
    agents.mkdir(parents=True)
    (agents / "org.rootsd.daemon.plist").touch()
    assert detect.start_service({})
    assert f"kickstart gui/{os.getuid()}/org.rootsd.daemon" in told.read_text()
