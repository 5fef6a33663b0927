"""`rootsd service` and its subcommands, with a fake systemctl."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rootsd.service import start_record, unit_files
from rootsd.service.manager import ProgramResult
from support.terminal import Shell
from support.user_session import PID, UserSession


@pytest.fixture
def installed(desktop: UserSession, shell: Shell) -> UserSession:
    """Yield a user session with an installed and running service."""
    with desktop.daemon():
        assert shell.run("service", "install").status == 0
    desktop.service_runs()
    desktop.recorder.told.clear()
    return desktop


def test_a_dry_run_prints_all_steps_and_does_nothing(desktop: UserSession, shell: Shell) -> None:
    done = shell.run("service", "install", "--strict", "--dry-run")
    written = [line for line in done.out.splitlines() if line.startswith("write ")]
    assert len(written) == len(unit_files.BASE_UNITS) + 1
    assert "run systemctl --user daemon-reload\n" in done.out
    assert "rootsd-control.socket\n" in done.out
    assert (desktop.recorder.orders(), desktop.units.exists()) == ([], False)
    steps = json.loads(shell.run("service", "install", "--dry-run", "--json").out)["steps"]
    assert f"write {desktop.units}/rootsd.service" in steps


def test_a_dry_run_finds_the_folder_of_the_units(desktop: UserSession, shell: Shell) -> None:
    looked_at = ProgramResult(
        0, "/conf/systemd/user.control /conf/systemd/user /etc/systemd/user\n"
    )
    desktop.recorder.answers["systemctl --user show --property=UnitPath"] = looked_at
    out = shell.run("service", "install", "--dry-run").out
    assert "write /conf/systemd/user/rootsd.service\n" in out
    assert "show" not in out


def test_a_dry_run_without_changes_keeps_the_files(installed: UserSession, shell: Shell) -> None:
    out = shell.run("service", "install", "--dry-run").out
    assert f"keep {installed.units}/rootsd.service\n" in out
    assert "write " not in out


def test_print_shows_what_install_writes(desktop: UserSession, shell: Shell) -> None:
    printed = shell.run("service", "print")
    files = json.loads(shell.run("service", "print", "--json").out)["files"]
    with desktop.daemon():
        assert shell.run("service", "install").out.startswith("daemon\t"), "it shows the status"
    assert [file["path"] for file in files] == [
        str(desktop.units / name) for name in unit_files.BASE_UNITS
    ]
    for file in files:
        assert Path(file["path"]).read_text() == file["text"]
        assert f"# {file['path']}\n{file['text']}" in printed.out


def test_without_a_user_manager_print_works_and_install_says_what_to_do(
    desktop: UserSession, shell: Shell
) -> None:
    desktop.recorder.answers["systemctl"] = ProgramResult(1, "", "Failed to connect to bus")
    assert shell.run("service", "print").status == 0
    done = shell.run("service", "install")
    assert done.status == 1
    assert "rootsd service print" in done.err
    assert "Traceback" not in done.err
    assert not desktop.units.exists()


def test_status_fails_if_the_service_does_not_run(installed: UserSession, shell: Shell) -> None:
    installed.service_runs("failed", pid=0)
    assert shell.run("service", "status").status == 69


def test_status_warns_about_files_of_another_version(installed: UserSession, shell: Shell) -> None:
    file = installed.units / "rootsd.service"
    file.write_text(file.read_text().replace("WatchdogSec=15s", "WatchdogSec=16s"))
    assert "rootsd service install" in shell.run("service", "status").err


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "status", "logs", "uninstall"])
def test_without_an_installed_service_the_error_names_install(
    desktop: UserSession, shell: Shell, verb: str
) -> None:
    done = shell.run("service", verb)
    assert (done.status, done.out) == (5, "")
    assert done.err.endswith("  try: rootsd service install\n")


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_json_names_the_daemon(installed: UserSession, shell: Shell, verb: str) -> None:
    with installed.daemon():
        done = shell.run("service", verb, "--json")
    assert done.status == 0
    assert json.loads(done.out)["daemon"]["pid"] == PID
    assert any(f"--user {verb} " in line for line in installed.recorder.orders())


def test_logs_runs_journalctl(
    installed: UserSession, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    become: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda name, words: become.append(words))
    shell.run("service", "logs", "-f")
    assert become == [["journalctl", "--user-unit=rootsd.service", "--lines=100", "--follow"]]


def test_logs_without_a_journal_is_an_error_without_a_traceback(
    installed: UserSession, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = shell.run("service", "logs")
    assert done.status == 1
    assert "journalctl cannot be run" in done.err


def test_uninstall_keeps_decisions_unless_it_purges(installed: UserSession, shell: Shell) -> None:
    decisions, unit = installed.state / "decisions.db", installed.units / "rootsd.service"
    decisions.touch()
    planned = shell.run("service", "uninstall", "--purge", "--dry-run")
    assert f"would remove {unit}\n" in planned.err
    assert f"would remove {installed.state}\n" in planned.err
    assert planned.err.endswith("nothing was changed.\n")
    assert (decisions.exists(), unit.exists()) == (True, True)
    done = shell.run("service", "uninstall")
    assert done.status == 0
    assert f"removed {installed.units}/rootsd.service\n" in done.err
    assert f"Decisions are kept in {installed.state}" in done.err
    assert (decisions.exists(), installed.units.exists()) == (True, False)
    whole = json.loads(shell.run("service", "uninstall", "--purge", "--json").out)
    assert str(installed.state) in whole["removed"]
    assert not installed.state.exists()
    assert shell.run("service", "uninstall", "--purge").status == 0


def test_uninstall_first_removes_the_permission_hooks(
    installed: UserSession, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a daemon, a strict hook refuses each call."""
    command = Path.home() / ".local/bin/rootsd"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.touch(0o755)
    monkeypatch.setattr("sys.argv", [str(command)])
    assert shell.run("connect", "claude-code", "--hook", "--strict").status == 0
    file = Path.home() / ".claude/settings.json"
    planned = shell.run("service", "uninstall", "--dry-run")
    assert "would remove the permission hook in ~/.claude/settings.json\n" in planned.err
    assert "onFailure" in file.read_text()
    file.write_text(file.read_text() + "{")
    refused = shell.run("service", "uninstall")
    assert refused.status == 1
    assert f"{file} is not edited" in refused.err
    assert (installed.units / "rootsd.service").exists()
    file.write_text(file.read_text().removesuffix("{"))
    done = shell.run("service", "uninstall")
    assert done.err.startswith("removed the permission hook in ~/.claude/settings.json\n")
    assert not file.exists()
    assert "rootsd" in (Path.home() / ".claude.json").read_text()


def test_down_stops_the_service_and_its_sockets(installed: UserSession, shell: Shell) -> None:
    done = shell.run("down")
    assert (done.status, done.err) == (0, f"The daemon (pid {PID}) is stopped.\n")
    assert installed.recorder.orders() == [
        "systemctl --user stop rootsd.socket rootsd-control.socket rootsd.service"
    ]
    assert (start_record.start_folder() / start_record.STOPPED_NAME).exists()
