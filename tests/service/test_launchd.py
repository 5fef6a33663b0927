"""The commands for `launchctl`, with a fake in its place. Nothing here has run on a Mac."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.service.launchd import AGENT, SYNC_AGENT, Launchd
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import ProgramResult, ServiceManagerUnavailable, is_running
from support.fake_service_manager import FakeServiceManager

DOMAIN = f"gui/{os.getuid()}"
TARGET = f"{DOMAIN}/{AGENT}"
SYNC = f"{DOMAIN}/{SYNC_AGENT}"
NOT_LOADED = ProgramResult(
    113, "", f'Could not find service "{AGENT}" in domain for user gui: 501'
)
# launchctl(1): "the output of this command is not API". rootsd shows it and does not act on it.
PRINTED = f"""{TARGET} = {{
	active count = 1
	path = /Users/ann/Library/LaunchAgents/{AGENT}.plist
	state = running
	runs = 3
	pid = 4121
}}
"""


@pytest.fixture
def recorder() -> FakeServiceManager:
    return FakeServiceManager()


@pytest.fixture
def launchd(tmp_path: Path, recorder: FakeServiceManager) -> Launchd:
    return Launchd(tmp_path, recorder)


def test_its_file_is_in_the_users_launch_agents(launchd: Launchd, tmp_path: Path) -> None:
    assert launchd.folder == tmp_path / "Library/LaunchAgents"
    assert not launchd.is_installed()
    launchd.folder.mkdir(parents=True)
    (launchd.folder / f"{AGENT}.plist").touch()
    assert launchd.is_installed()
    assert launchd.is_available()


def test_a_loaded_agent_is_reloaded_started_and_stopped_also_for_the_next_login(
    launchd: Launchd, recorder: FakeServiceManager
) -> None:
    launchd.load()
    launchd.wake()
    launchd.stop()
    assert recorder.orders() == [
        f"launchctl bootout {SYNC}", f"launchctl bootout {TARGET}", f"launchctl enable {TARGET}",
        f"launchctl kickstart {TARGET}",
        f"launchctl disable {TARGET}", f"launchctl bootout {SYNC}", f"launchctl bootout {TARGET}",
    ]  # fmt: skip


def test_an_unloaded_agent_is_bootstrapped_before_its_start_and_not_booted_out(
    launchd: Launchd, recorder: FakeServiceManager
) -> None:
    recorder.answers[f"launchctl print {TARGET}"] = NOT_LOADED
    recorder.answers[f"launchctl print {SYNC}"] = NOT_LOADED
    launchd.start()
    assert recorder.orders() == [
        f"launchctl enable {TARGET}",
        f"launchctl bootstrap {DOMAIN} {launchd.folder}/{AGENT}.plist",
        f"launchctl kickstart {TARGET}",
    ]
    launchd.stop()
    launchd.unload()
    launchd.forget()
    assert not any("bootout" in line for line in recorder.told)
    assert recorder.orders()[-1] == f"launchctl enable {TARGET}"


@pytest.mark.parametrize("loaded", [True, False])
def test_a_restart_kills_the_running_agent(
    launchd: Launchd, recorder: FakeServiceManager, *, loaded: bool
) -> None:
    recorder.answers[f"launchctl print {TARGET}"] = (
        ProgramResult(0, PRINTED) if loaded else NOT_LOADED
    )
    launchd.restart()
    assert recorder.orders()[-1] == f"launchctl kickstart -k {TARGET}"
    assert any("bootstrap" in line for line in recorder.told) is not loaded


def test_the_agent_for_sync_is_restarted_only_if_it_is_installed(
    launchd: Launchd, recorder: FakeServiceManager
) -> None:
    assert not launchd.restart_sync()
    assert recorder.orders() == []
    launchd.folder.mkdir(parents=True)
    (launchd.folder / f"{SYNC_AGENT}.plist").touch()
    assert launchd.restart_sync()
    recorder.answers[f"launchctl print {SYNC}"] = NOT_LOADED
    launchd.start()
    assert recorder.orders() == [
        f"launchctl kickstart -k {SYNC}",
        f"launchctl enable {TARGET}",
        f"launchctl kickstart {TARGET}",
        f"launchctl bootstrap {DOMAIN} {launchd.folder}/{SYNC_AGENT}.plist",
        f"launchctl kickstart {SYNC}",
    ]


def test_the_state_of_a_running_a_disabled_or_an_unloaded_agent_is_parsed(
    launchd: Launchd, recorder: FakeServiceManager
) -> None:
    recorder.answers[f"launchctl print {TARGET}"] = ProgramResult(0, PRINTED)
    state = launchd.state()
    assert (state["active"], state["enabled"], state["sockets"]) == ("running", True, False)
    assert (state["pid"], state["restarts"], is_running(state)) == (4121, 2, True)
    recorder.answers |= {
        f"launchctl print {TARGET}": ProgramResult(0, "\tstate = not running\n"),
        "launchctl print-disabled": ProgramResult(0, f'\t\t"{AGENT}" => disabled\n'),
    }
    state = launchd.state()
    assert (state["active"], state["enabled"], state["pid"]) == ("not running", False, None)
    assert not is_running(state)
    recorder.answers[f"launchctl print {TARGET}"] = NOT_LOADED
    assert launchd.state()["active"] == "not loaded"


def test_a_failed_start_is_reported_and_over_ssh_that_there_is_no_session(
    launchd: Launchd, recorder: FakeServiceManager
) -> None:
    recorder.answers["launchctl kickstart"] = ProgramResult(
        37, "", "Operation already in progress"
    )
    with pytest.raises(StartFailed, match="already in progress") as caught:
        launchd.wake()
    assert caught.value.remedy == f"launchctl kickstart {TARGET}"
    launchd.ensure_reachable()
    recorder.answers[f"launchctl print {DOMAIN}"] = ProgramResult(125, "", "Domain does not exist")
    with pytest.raises(ServiceManagerUnavailable, match="Domain does not exist") as unavailable:
        launchd.ensure_reachable()
    assert "rootsd service print" in unavailable.value.message


def test_its_log_is_a_file(launchd: Launchd, tmp_path: Path) -> None:
    log = str(tmp_path / "Library/Logs/rootsd/daemon.log")
    assert launchd.log_command(follow=False) == ["tail", "-n", "100", log]
    assert launchd.log_command(follow=True) == ["tail", "-n", "100", "-F", log]
