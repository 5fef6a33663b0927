"""The checks of the doctor that run outside the daemon."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rootsd.cli.answers import doctor, lifecycle, service_files
from rootsd.cli.answers.invocation import Invocation
from rootsd.core.doctor import DoctorFinding, Severity
from rootsd.core.errors import RootsdError
from rootsd.net.unix_socket import address_of
from rootsd.service import detect
from rootsd.service.manager import ServiceState
from rootsd.wall.kernel.probe import probe
from support.fake_daemon import FakeDaemon, a_status
from support.fake_desktop import desktop

OK, WARNING, ERROR = Severity
_PROBE = cache(probe)


@pytest.fixture(autouse=True)
def probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the kernel once: each question forks this process, which has all tests loaded."""
    monkeypatch.setattr(doctor, "probe", _PROBE)


@pytest.fixture
def running(daemon: FakeDaemon, rootsd_dir: Path) -> Iterator[FakeDaemon]:
    """A daemon with correct folders and a socket for clients."""
    daemon.answers["status"] = a_status()
    for name in ("state", "run", "run/pub", "run/ctl"):
        folder = rootsd_dir / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        with address_of(bytes(rootsd_dir / "run" / "pub" / "mcp.sock")) as address:
            listener.bind(address)
        listener.listen()
        yield daemon


def found(topic: str) -> list[DoctorFinding]:
    return [c.diagnosis for c in doctor.run_checks(Invocation()) if c.diagnosis.topic == topic]


def cure(topic: str) -> None:
    for case in doctor.run_checks(Invocation()):
        if case.diagnosis.topic == topic and case.diagnosis.condition is not OK:
            assert case.fix is not None
            case.fix()


def test_a_healthy_daemon_is_reported_as_ok(running: FakeDaemon) -> None:
    told = {case.diagnosis.topic: case.diagnosis for case in doctor.run_checks(Invocation())}
    for topic in ("configuration", "state", "sockets", "disk", "daemon"):
        assert told[topic].condition is OK, told[topic]


def test_a_missing_daemon_is_an_error_and_the_fix_starts_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Invocation] = []
    monkeypatch.setattr(lifecycle, "ensure_running", started.append)
    (told,) = found("daemon")
    assert (told.condition, told.remedy) == (ERROR, "rootsd up")
    cure("daemon")
    assert len(started) == 1


def test_a_daemon_of_another_version_is_replaced(
    running: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Invocation] = []
    monkeypatch.setattr(lifecycle, "ensure_running", started.append)
    older = {**a_status()["daemon"], "version": "0.0.1"}
    running.answers["status"] = a_status(daemon=older)
    (told,) = found("daemon")
    assert told.condition is WARNING
    assert "0.0.1" in told.finding
    cure("daemon")
    assert len(started) == 1


def test_folders_that_are_open_to_others_are_made_private(
    running: FakeDaemon, rootsd_dir: Path
) -> None:
    folders = [rootsd_dir / name for name in ("state", "run/pub", "run/ctl")]
    for folder in folders:
        folder.chmod(0o755)
    told = "".join(each.finding for each in (*found("state"), *found("sockets")))
    assert all(f"{folder} is open" in told for folder in folders)
    for case in doctor.run_checks(Invocation()):
        if case.fix is not None and case.diagnosis.condition is not OK:
            case.fix()
    assert {each.condition for each in (*found("state"), *found("sockets"))} == {OK}
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_socket_without_a_listener_is_an_error(running: FakeDaemon, rootsd_dir: Path) -> None:
    (rootsd_dir / "run" / "pub" / "mcp.sock").unlink()
    assert found("sockets")[-1] == DoctorFinding(
        "sockets", ERROR, "no daemon listens for MCP clients", "rootsd up"
    )


def test_an_invalid_configuration_is_reported(running: FakeDaemon, rootsd_dir: Path) -> None:
    file = rootsd_dir / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text("parnet = 1\n")
    (told,) = found("configuration")
    assert (told.condition, told.remedy) == (ERROR, "rootsd config edit")
    assert "line 1, key parnet" in told.finding


def test_variables_that_clients_do_not_pass_on_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (told,) = found("environment")
    assert "ROOTSD_DIR" in told.finding
    monkeypatch.delenv("ROOTSD_DIR")
    (told,) = found("environment")
    assert told.finding.startswith("HOME is ")
    monkeypatch.setenv("HOME", os.path.expanduser(f"~{_me()}"))
    assert found("environment")[0].condition is OK


def _me() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


class FakeSupervisor:
    """A service with the state that a test needs."""

    folder = Path("/nowhere")

    def __init__(self, *, active: str = "active", trouble: str = "") -> None:
        self.active, self.trouble = active, trouble

    def is_installed(self) -> bool:
        return True

    def ensure_reachable(self) -> None:
        if self.trouble:
            raise RootsdError(self.trouble, "loginctl enable-linger")

    def state(self) -> ServiceState:
        return ServiceState(
            active=self.active, enabled=True, sockets=True, pid=5, restarts=0, said=""
        )


@pytest.mark.parametrize(
    ("managing", "stale", "condition", "remedy"),
    [
        (FakeSupervisor(), [], OK, ""),
        (FakeSupervisor(), [Path("rootsd.service")], WARNING, "rootsd service install"),
        (FakeSupervisor(active="failed"), [], WARNING, "rootsd service start"),
        (FakeSupervisor(trouble="no bus"), [], ERROR, "loginctl enable-linger"),
    ],
)
def test_the_service_is_reported(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    managing: FakeSupervisor,
    stale: list[Path],
    condition: Severity,
    remedy: str,
) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setattr(detect, "local_service_manager", lambda environment: managing)
    monkeypatch.setattr(service_files.ServiceFiles, "stale", lambda self: stale)
    monkeypatch.setattr(service_files, "installed_command", lambda: Path("/bin/rootsd"))
    (told,) = found("service")
    assert (told.condition, told.remedy or "") == (condition, remedy)


@pytest.mark.needs("dbus-daemon")
def test_the_desktop_that_shows_notifications_is_named(
    home: Path, rootsd_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rootsd_dir / "config").mkdir(parents=True)
    file = rootsd_dir / "config" / "config.toml"
    with desktop(tmp_path) as screen:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", screen.address)
        assert [told.finding for told in found("notifications")] == ["Fake Shell shows them"]
        file.write_text("[notify]\nenabled = false\n")
        assert "switches them off" in found("notifications")[0].finding


def test_a_machine_without_a_desktop_is_no_problem(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
    (told,) = found("notifications")
    assert told.condition is OK
    assert told.finding.startswith("there is no desktop that shows them (")
