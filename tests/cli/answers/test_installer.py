"""Installing, changing, and removing the service, with fakes of systemctl and launchctl."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.cli.answers import installer, lifecycle, service_files
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.render import Flags
from rootsd.core.errors import DaemonUnreachable
from rootsd.service import start_record, unit_files
from rootsd.service.launcher import StartFailed
from rootsd.service.manager import ProgramResult
from support.user_session import UserSession

UNITS = "rootsd.service rootsd.socket rootsd-control.socket"


@pytest.fixture
def invocation() -> Invocation:
    return Invocation(Flags(quiet=True))


def install(invocation: Invocation, *, strict: bool | None = None) -> None:
    installer.install_service(invocation, installer.user_supervisor(), strict=strict)


def installed(desktop: UserSession, invocation: Invocation, *, strict: bool | None = None) -> None:
    """Install and start the service, and clear the recorded calls."""
    with desktop.daemon():
        install(invocation, strict=strict)
    desktop.service_runs()
    desktop.recorder.told.clear()


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_files_are_written_loaded_and_started(
    desktop: UserSession, invocation: Invocation
) -> None:
    with desktop.daemon(pid=0):
        install(invocation)
    assert files_in(desktop.units) == sorted(unit_files.BASE_UNITS)
    assert desktop.recorder.orders() == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable {UNITS}",
        f"systemctl --user reset-failed {UNITS}",
        f"systemctl --user start {UNITS}",
    ]
    assert str(desktop.state) in (desktop.units / "rootsd.service").read_text()


def test_a_second_install_writes_and_restarts_nothing(
    desktop: UserSession, invocation: Invocation
) -> None:
    installed(desktop, invocation)
    before = {file: file.stat().st_mtime_ns for file in desktop.units.rglob("*")}
    with desktop.daemon():
        install(invocation)
    assert {file: file.stat().st_mtime_ns for file in desktop.units.rglob("*")} == before
    assert desktop.recorder.orders() == [
        f"systemctl --user reset-failed {UNITS}",
        f"systemctl --user start {UNITS}",
    ]


def test_install_after_a_down_starts_the_service(
    desktop: UserSession, invocation: Invocation
) -> None:
    start_record.mark_stopped()
    with desktop.daemon():
        install(invocation)
    start_record.ensure_start_allowed()


def test_a_background_daemon_is_replaced_by_the_service(
    desktop: UserSession, invocation: Invocation
) -> None:
    desktop.service_runs("inactive", pid=0)
    with desktop.daemon(pid=77):
        install(invocation)
    assert desktop.stopped == [invocation]


def test_an_older_daemon_of_the_service_is_replaced(
    desktop: UserSession, invocation: Invocation
) -> None:
    installed(desktop, invocation)
    with desktop.daemon(version="0.0.1"):
        install(invocation)
    assert "systemctl --user restart rootsd.service" in desktop.recorder.orders()


def test_changed_sockets_are_stopped_first_since_they_are_in_use(
    desktop: UserSession, invocation: Invocation
) -> None:
    installed(desktop, invocation)
    socket = desktop.units / "rootsd.socket"
    socket.write_text(f"# {unit_files.GENERATED_MARK}\n[Socket]\nBacklog=1\n")
    with desktop.daemon():
        install(invocation)
    told = desktop.recorder.orders()
    stop = told.index("systemctl --user stop rootsd.socket rootsd-control.socket rootsd.service")
    assert stop < told.index(f"systemctl --user start {UNITS}")
    assert "Backlog=1024" in socket.read_text()


def test_strict_is_kept_until_no_strict(desktop: UserSession, invocation: Invocation) -> None:
    drop_in = desktop.units / unit_files.STRICT_DROP_IN
    installed(desktop, invocation, strict=True)
    assert drop_in.exists()
    with desktop.daemon():
        install(invocation)
        assert drop_in.exists()
        install(invocation, strict=False)
    assert not drop_in.exists()
    assert "systemctl --user restart rootsd.service" in desktop.recorder.orders()


def test_strict_is_removed_if_the_system_refuses_it(
    desktop: UserSession, invocation: Invocation, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(desktop, invocation)
    drop_in = desktop.units / unit_files.STRICT_DROP_IN
    desktop.recorder.refuses = lambda line: drop_in.exists() and " restart " in line
    with desktop.daemon():
        install(invocation, strict=True)
    assert not drop_in.exists()
    assert desktop.recorder.orders()[-1] == f"systemctl --user start {UNITS}"
    assert "cannot start with --strict" in capsys.readouterr().err


def test_another_failed_start_is_reported(desktop: UserSession, invocation: Invocation) -> None:
    desktop.recorder.answers["systemctl --user start"] = ProgramResult(1, "", "it failed")
    with pytest.raises(StartFailed, match="it failed"):
        install(invocation)


def test_a_handwritten_unit_is_left_alone(desktop: UserSession, invocation: Invocation) -> None:
    desktop.units.mkdir(parents=True)
    (desktop.units / "rootsd.service").write_text("[Service]\nExecStart=/my/own\n")
    with pytest.raises(service_files.ForeignServiceFile) as caught:
        install(invocation)
    assert caught.value.remedy.startswith("mv ")
    assert files_in(desktop.units) == ["rootsd.service"]
    with pytest.raises(installer.ServiceNotInstalled):
        installer.uninstall_service(invocation, installer.user_supervisor())


def test_with_rootsd_dir_there_is_no_service(
    desktop: UserSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOTSD_DIR", "/somewhere")
    with pytest.raises(installer.ServiceNeedsDefaultPlaces) as caught:
        installer.user_supervisor()
    assert caught.value.remedy == "env -u ROOTSD_DIR rootsd service install"


def test_the_service_gets_the_folders_of_the_shell(
    desktop: UserSession, invocation: Invocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(desktop.home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative, so to be ignored")
    installed(desktop, invocation, strict=True)
    places = (desktop.units / unit_files.PLACES_DROP_IN).read_text()
    assert f"\nEnvironment=XDG_STATE_HOME={desktop.home}/state\n" in places
    strict = (desktop.units / unit_files.STRICT_DROP_IN).read_text()
    data = desktop.home / ".local/share/rootsd"
    written = f"{desktop.home}/state/rootsd {data} {desktop.state} -%t/rootsd"
    assert f"ReadWritePaths={written}" in strict


def test_only_install_changes_the_folders_of_the_service(
    desktop: UserSession,
    invocation: Invocation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed(desktop, invocation)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    for refused in (installer.start_service, installer.restart_service):
        with pytest.raises(start_record.PlacesMismatch, match="started with none") as caught:
            refused(installer.installed_supervisor())
        assert caught.value.remedy.startswith("rootsd service install")
    with desktop.daemon():
        with pytest.raises(start_record.PlacesMismatch):
            lifecycle.ensure_running(invocation)
        install(invocation)
    assert "XDG_CONFIG_HOME is /elsewhere here" in capsys.readouterr().err
    assert "=/elsewhere\n" in (desktop.units / unit_files.PLACES_DROP_IN).read_text()
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert (
        service_files.plan_files(invocation, installer.user_supervisor(), strict=None).stale()
        == []
    )


def test_uninstall_removes_only_the_installed_files(
    desktop: UserSession, invocation: Invocation
) -> None:
    installed(desktop, invocation, strict=True)
    own = desktop.units / "rootsd.service.d" / "override.conf"
    own.write_text("[Service]\nEnvironment=MINE=1\n")
    gone = installer.uninstall_service(invocation, installer.user_supervisor())
    assert len(gone) == len(unit_files.ALL_UNITS)
    assert files_in(desktop.units) == ["rootsd.service.d/override.conf"]
    assert [line.split()[2] for line in desktop.recorder.orders()] == [
        "stop", "disable", "daemon-reload", "reset-failed",
    ]  # fmt: skip
    with pytest.raises(DaemonUnreachable, match="stopped"):
        start_record.load_start_record()
    with pytest.raises(installer.ServiceNotInstalled):
        installer.uninstall_service(invocation, installer.user_supervisor())


def test_no_empty_folder_is_left(desktop: UserSession, invocation: Invocation) -> None:
    installed(desktop, invocation)
    installer.uninstall_service(invocation, installer.user_supervisor())
    assert not (desktop.home / ".config/systemd").exists()


def test_start_stop_and_restart_respect_the_mark_of_down(
    desktop: UserSession, invocation: Invocation
) -> None:
    installed(desktop, invocation)
    managing = installer.installed_supervisor()
    with desktop.daemon():
        installer.stop_service(managing)
        with pytest.raises(DaemonUnreachable, match="stopped"):
            start_record.load_start_record()
        installer.start_service(managing)
        start_record.load_start_record()
        installer.restart_service(managing)
    assert [line.split()[2] for line in desktop.recorder.orders()] == [
        "stop", "reset-failed", "start", "reset-failed", "restart",
    ]  # fmt: skip


def test_on_a_mac_the_agent_is_written_loaded_and_started(
    desktop: UserSession, invocation: Invocation
) -> None:
    desktop.is_a_mac()
    with desktop.daemon():
        install(invocation)
    assert files_in(desktop.agents) == list(unit_files.AGENTS)
    assert [line.split()[1] for line in desktop.recorder.orders()] == [
        "bootout", "bootout", "enable", "enable", "kickstart", "kickstart",
    ]  # fmt: skip
    installer.uninstall_service(invocation, installer.user_supervisor())
    assert not desktop.agents.exists()
