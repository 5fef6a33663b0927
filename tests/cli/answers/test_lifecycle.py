"""Starting and stopping the daemon, with fake daemons and fake processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd import __version__
from rootsd.cli.answers import lifecycle
from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.render import Flags
from rootsd.core.errors import Busy, ErrorCode
from rootsd.places.base_folders import default_folder
from rootsd.service import launcher, start_record
from rootsd.service.launcher import StartFailed
from rootsd.service.start_record import StartPlan
from support.fake_daemon import FakeDaemon, a_status
from support.user_session import PID, UserSession

SESSION = Invocation(Flags(quiet=True))


def running(version: str = __version__, pid: int = 4121) -> dict[str, object]:
    return a_status(daemon={"version": version, "pid": pid, "since": "2026-11-20T08:11:02Z"})


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[StartPlan]:
    """Return the start records that were used. Nothing is started."""
    recipes: list[StartPlan] = []
    monkeypatch.setattr(launcher, "launch", recipes.append)
    return recipes


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits until its input is closed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_running_daemon_reloads_the_configuration(
    daemon: FakeDaemon, launched: list[StartPlan]
) -> None:
    daemon.answers |= {"status": running(), "reload": running()}
    lifecycle.ensure_running(SESSION)
    assert [method for method, _ in daemon.requests] == ["status", "reload"]
    assert launched == []


def test_a_daemon_killed_during_a_request_is_started_again(
    daemon: FakeDaemon, launched: list[StartPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.raw = b""
    is_running = iter((True, False))
    monkeypatch.setattr("rootsd.cli.answers.control_client.is_running", lambda: next(is_running))
    lifecycle.ensure_running(SESSION)
    assert [method for method, _ in daemon.requests] == ["status"]
    assert len(launched) == 1


def test_a_start_waits_for_the_locks_of_the_old_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [StartFailed("another rootsd is at work", "", ErrorCode.BUSY), None]

    def launch(_: StartPlan) -> None:
        if (failure := outcomes.pop(0)) is not None:
            raise failure

    monkeypatch.setattr(launcher, "launch", launch)
    lifecycle.ensure_running(SESSION)
    assert outcomes == []


def test_without_a_daemon_one_is_started_and_bridges_may_start_it_again(
    launched: list[StartPlan],
) -> None:
    start_record.mark_stopped()
    lifecycle.ensure_running(SESSION)
    assert launched == [start_record.load_start_record()]


def test_a_daemon_of_another_version_is_replaced(
    daemon: FakeDaemon,
    launched: list[StartPlan],
    process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_running = iter((True, False))
    monkeypatch.setattr("rootsd.cli.answers.control_client.is_running", lambda: next(is_running))

    def end(_: object) -> dict[str, object]:
        process.kill()
        return {}

    daemon.answers |= {"status": running("0.0.1", process.pid), "stop": end}
    lifecycle.ensure_running(SESSION)
    assert len(launched) == 1
    assert process.wait(60) != 0


def test_a_newer_daemon_keeps_running(
    daemon: FakeDaemon, launched: list[StartPlan], capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers |= {"status": running("99.0"), "reload": running()}
    lifecycle.ensure_running(SESSION)
    assert [method for method, _ in daemon.requests] == ["status", "reload"]
    assert launched == []
    assert "version 99.0, newer than this command" in capsys.readouterr().err


@pytest.mark.parametrize("no_input", [True, False])
def test_on_a_terminal_an_older_daemon_is_replaced_only_if_the_person_agrees(
    daemon: FakeDaemon,
    launched: list[StartPlan],
    monkeypatch: pytest.MonkeyPatch,
    *,
    no_input: bool,
) -> None:
    asked: list[tuple[str, object]] = []

    def refuse(question: str, **options: object) -> bool:
        asked.append((question, options["default"]))
        return False

    stopped: list[Invocation] = []
    monkeypatch.setattr(lifecycle, "stop", stopped.append)
    monkeypatch.setattr("click.confirm", refuse)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    daemon.answers |= {"status": running("0.0.1"), "reload": running()}
    lifecycle.ensure_running(Invocation(Flags(quiet=True, no_input=no_input)))
    question = f"The daemon is version 0.0.1. Start {__version__} instead?"
    assert asked == ([] if no_input else [(question, True)]), "Enter means yes"
    assert bool(stopped) is no_input
    assert launched == []


def test_an_installed_service_is_started_instead(
    launched: list[StartPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = UserSession(tmp_path, monkeypatch)
    desktop.units.mkdir(parents=True)
    (desktop.units / "rootsd.service").touch()
    is_running = iter((False, True))
    monkeypatch.setattr("rootsd.cli.answers.control_client.is_running", lambda: next(is_running))
    with desktop.daemon() as daemon:
        lifecycle.ensure_running(Invocation(Flags(quiet=True)))
        assert daemon.asked("reload") == [{}]
    assert desktop.recorder.orders()[-1] == "systemctl --user start rootsd.service"
    assert launched == []


def test_stopping_a_service_reports_its_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = UserSession(tmp_path, monkeypatch)
    assert lifecycle.shut_down(SESSION) is None
    desktop.units.mkdir(parents=True)
    (desktop.units / "rootsd.service").touch()
    desktop.service_runs()
    assert lifecycle.shut_down(SESSION) == PID
    assert desktop.recorder.orders() == ["systemctl --user stop rootsd.service"]


def test_a_daemon_that_never_starts_is_reported() -> None:
    with pytest.raises(StartFailed, match="not ready after 0 s"):
        lifecycle.wait_until_ready(0.0)


def test_a_daemon_started_concurrently_is_accepted(
    daemon: FakeDaemon, launched: list[StartPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["reload"] = running()
    is_running = iter((False, True))
    monkeypatch.setattr("rootsd.cli.answers.control_client.is_running", lambda: next(is_running))
    lifecycle.ensure_running(SESSION)
    assert daemon.asked("reload") == [{}]
    assert launched == []


@pytest.mark.parametrize("code", [ErrorCode.BUSY, ErrorCode.FAILED])
def test_a_failed_start_is_reported(monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> None:
    def fail(_: StartPlan) -> None:
        raise StartFailed("no", "", code)

    monkeypatch.setattr(launcher, "launch", fail)
    monkeypatch.setattr(launcher, "BUSY_TIMEOUT_S", 0.0)
    with pytest.raises(StartFailed):
        lifecycle.ensure_running(SESSION)


def test_a_stop_waits_until_the_process_has_ended(
    daemon: FakeDaemon, process: subprocess.Popen[bytes]
) -> None:
    def end(_: object) -> dict[str, object]:
        process.kill()
        return {}

    daemon.answers |= {"status": running(pid=process.pid), "stop": end}
    assert lifecycle.stop(SESSION) == process.pid
    assert process.poll() is not None


def test_a_daemon_that_does_not_end_is_named(
    daemon: FakeDaemon, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers |= {"status": running(pid=process.pid), "stop": {}}
    monkeypatch.setattr(launcher.ExitWaiter, "wait", lambda self: False)
    with pytest.raises(Busy, match="does not exit") as caught:
        lifecycle.stop(SESSION)
    assert caught.value.remedy == f"kill {process.pid}"


def test_without_a_daemon_there_is_nothing_to_stop_or_reload() -> None:
    assert lifecycle.stop(SESSION) is None
    assert not lifecycle.reload_if_running(SESSION)


def test_changed_folders_are_used_and_reported_after_a_stop(
    launched: list[StartPlan],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    UserSession(tmp_path, monkeypatch)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    invocation = Invocation(Flags())
    lifecycle.ensure_running(invocation)
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    with pytest.raises(start_record.PlacesMismatch, match="started with none") as caught:
        lifecycle.ensure_running(invocation)
    assert caught.value.remedy.startswith("rootsd down")
    start_record.mark_stopped()
    lifecycle.ensure_running(invocation)
    assert launched[-1].environment["XDG_STATE_HOME"] == "/elsewhere"
    assert "the daemon now uses the folders of this shell" in capsys.readouterr().err
    monkeypatch.delenv("XDG_STATE_HOME")
    lifecycle.ensure_running(invocation)
    assert launched[-1].environment["XDG_STATE_HOME"] == "/elsewhere"
    told = " ".join(capsys.readouterr().err.split())
    assert "XDG_STATE_HOME is /elsewhere, as at the last start." in told
    usual = default_folder("XDG_STATE_HOME")
    assert f"rootsd down && XDG_STATE_HOME={usual} rootsd up" in told
    start_record.mark_stopped()
    monkeypatch.setenv("XDG_STATE_HOME", usual)
    lifecycle.ensure_running(invocation)
    monkeypatch.delenv("XDG_STATE_HOME")
    capsys.readouterr()
    lifecycle.ensure_running(invocation)
    assert "at the last start" not in capsys.readouterr().err
