"""The commands for `systemctl --user`, with a fake in its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.service import manager
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import (
    NOT_RUN,
    ProgramResult,
    ServiceCommandFailed,
    ServiceManagerUnavailable,
    is_running,
)
from rootsd.service.systemd import Systemd
from support.fake_service_manager import FakeServiceManager

ALL = "rootsd.service rootsd.socket rootsd-control.socket"
SHOWN = """ActiveState=active
UnitFileState=enabled
MainPID=4121
NRestarts=2
StatusText=3 published, 1 pending, 2 connected
Result=success
"""


@pytest.fixture
def recorder() -> FakeServiceManager:
    return FakeServiceManager()


@pytest.fixture
def systemd(
    tmp_path: Path, recorder: FakeServiceManager, monkeypatch: pytest.MonkeyPatch
) -> Systemd:
    monkeypatch.setattr(manager, "USER_RUNTIME", tmp_path / "run")
    return Systemd(tmp_path / "home", "", recorder)


def put(systemd: Systemd, *names: str) -> None:
    systemd.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (systemd.folder / name).touch()


def test_its_units_are_below_home_unless_they_exist_where_the_shell_says(tmp_path: Path) -> None:
    home, config = tmp_path / "home", tmp_path / "config"
    assert Systemd(home, "", FakeServiceManager()).folder == home / ".config/systemd/user"
    assert Systemd(home, str(config), FakeServiceManager()).folder == home / ".config/systemd/user"
    (config / "systemd/user").mkdir(parents=True)
    (config / "systemd/user/rootsd.service").touch()
    assert Systemd(home, str(config), FakeServiceManager()).folder == config / "systemd/user"


def test_its_units_are_where_the_manager_looks(
    systemd: Systemd, recorder: FakeServiceManager, tmp_path: Path
) -> None:
    (tmp_path / "run" / str(os.getuid()) / "systemd").mkdir(parents=True)
    runtime = tmp_path / "run" / str(os.getuid())
    looked_at = (
        f"{runtime}/systemd/user.control", "/a home/.xdg/systemd/user.control",
        f"{runtime}/systemd/transient", "/a home/.xdg/systemd/user", "/etc/systemd/user",
    )  # fmt: skip
    recorder.answers["systemctl --user show --property=UnitPath"] = ProgramResult(
        0, " ".join(looked_at) + "\n"
    )
    assert systemd.folder == Path("/a home/.xdg/systemd/user")
    assert systemd.folder == Path("/a home/.xdg/systemd/user")
    assert len(recorder.told) == 1


def test_loading_enables_all_three_and_unloading_stops_the_sockets_before_the_service(
    systemd: Systemd, recorder: FakeServiceManager
) -> None:
    systemd.load()
    systemd.unload()
    assert recorder.told == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable {ALL}",
        "systemctl --user stop rootsd.socket rootsd-control.socket rootsd.service",
        f"systemctl --user disable {ALL}",
    ]


def test_a_person_may_start_a_service_that_failed_too_often_and_a_bridge_may_not(
    systemd: Systemd, recorder: FakeServiceManager
) -> None:
    """Socket units that were removed are not named."""
    put(systemd, "rootsd.service")
    systemd.start()
    systemd.restart()
    systemd.stop()
    systemd.wake()
    assert recorder.told == [
        f"systemctl --user {verb} rootsd.service"
        for verb in ("reset-failed", "start", "reset-failed", "restart", "stop", "start")
    ]


def test_a_removed_unit_is_forgotten(systemd: Systemd, recorder: FakeServiceManager) -> None:
    recorder.answers["systemctl --user reset-failed"] = ProgramResult(1, "", "not loaded")
    systemd.forget()
    assert recorder.told[0] == "systemctl --user daemon-reload"


def test_the_state_is_parsed_also_of_an_unknown_service(
    systemd: Systemd, recorder: FakeServiceManager
) -> None:
    recorder.answers["systemctl --user show rootsd.service"] = ProgramResult(0, SHOWN)
    state = systemd.state()
    assert (state["active"], state["enabled"], state["sockets"]) == ("active", True, True)
    assert (state["pid"], state["restarts"], is_running(state)) == (4121, 2, True)
    assert state["said"] == "3 published, 1 pending, 2 connected"
    recorder.answers |= {
        "systemctl --user is-active": ProgramResult(3),
        "systemctl --user show rootsd.service": ProgramResult(
            0, "ActiveState=inactive\nMainPID=0\n"
        ),
    }
    state = systemd.state()
    assert (state["active"], state["enabled"], state["sockets"]) == ("inactive", False, False)
    assert (state["pid"], state["restarts"], is_running(state)) == (None, 0, False)


def test_a_failed_start_has_the_daemons_own_message(
    systemd: Systemd, recorder: FakeServiceManager
) -> None:
    failed = "ActiveState=failed\nResult=exit-code\nStatusText=config.toml: line 3\n"
    recorder.answers |= {
        "systemctl --user start": ProgramResult(1, "", "Job for rootsd.service failed."),
        "systemctl --user show": ProgramResult(0, failed),
    }
    with pytest.raises(StartFailed, match=r"exit-code: config\.toml: line 3") as caught:
        systemd.wake()
    assert caught.value.remedy == "rootsd service logs"


def test_without_systemctl_the_missing_command_is_named(
    systemd: Systemd, recorder: FakeServiceManager
) -> None:
    recorder.answers["systemctl"] = ProgramResult(NOT_RUN, "", "no such file")
    with pytest.raises(StartFailed, match="no such file") as caught:
        systemd.wake()
    assert caught.value.remedy == "systemctl --user start rootsd.service"
    with pytest.raises(ServiceCommandFailed, match="no such file"):
        systemd.load()


def test_where_no_manager_is_reached_it_says_what_works(
    systemd: Systemd, recorder: FakeServiceManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "BOOTED", tmp_path / "nowhere")
    with pytest.raises(ServiceManagerUnavailable, match="systemd does not run here") as caught:
        systemd.ensure_reachable()
    assert caught.value.remedy == "rootsd up"
    monkeypatch.setattr(manager, "BOOTED", tmp_path)
    with pytest.raises(ServiceManagerUnavailable) as caught:
        systemd.ensure_reachable()
    assert (systemd.is_available(), recorder.told) == (False, []), "there is no user manager"
    for word in ("XDG_RUNTIME_DIR", "enable-linger", "rootsd service print", "rootsd up"):
        assert word in caught.value.message
    (tmp_path / "run" / str(os.getuid()) / "systemd").mkdir(parents=True)
    systemd.ensure_reachable()
    no_bus = ProgramResult(1, "", "Failed to connect to bus: No medium found")
    recorder.answers["systemctl"] = no_bus
    with pytest.raises(ServiceManagerUnavailable, match="No medium found") as caught:
        systemd.ensure_reachable()
    assert "rootsd service print" in caught.value.message


def test_its_log_is_the_journal(systemd: Systemd) -> None:
    assert systemd.log_command(follow=True) == [
        "journalctl", "--user-unit=rootsd.service", "--lines=100", "--follow",
    ]  # fmt: skip
    assert systemd.log_command(follow=False)[-1] == "--no-pager"
