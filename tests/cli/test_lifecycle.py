"""Make the daemon run, and make it stop: by asking a fake one, and by starting fake ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from rootsd import __version__
from rootsd.cli import lifecycle
from rootsd.cli.flags import Flags
from rootsd.cli.session import Session
from rootsd.core.errors import Busy, ErrorCode
from rootsd.host import starter
from rootsd.host.starter import Recipe, StartFailed
from support.fake_daemon import FakeDaemon, a_status

SESSION = Session(Flags(quiet=True))


def running(version: str = __version__, pid: int = 4121) -> dict[str, object]:
    return a_status(daemon={"version": version, "pid": pid, "since": "2026-11-20T08:11:02Z"})


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Recipe]:
    """The recipes that were followed; nothing is started."""
    recipes: list[Recipe] = []
    monkeypatch.setattr(starter, "launch", recipes.append)
    return recipes


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits until its input is closed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_daemon_that_runs_reads_the_configuration_again(
    daemon: FakeDaemon, launched: list[Recipe]
) -> None:
    daemon.answers |= {"status": running(), "reload": running()}
    lifecycle.make_run(SESSION)
    assert [method for method, _ in daemon.requests] == ["status", "reload"]
    assert launched == []


def test_where_none_runs_one_is_started_and_bridges_may_do_so_too(launched: list[Recipe]) -> None:
    starter.forbid()
    lifecycle.make_run(SESSION)
    assert launched == [starter.recall()]


def test_a_daemon_of_another_version_is_replaced(
    daemon: FakeDaemon,
    launched: list[Recipe],
    process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_running = iter((True, False))
    monkeypatch.setattr("rootsd.cli.client.is_running", lambda: next(is_running))

    def end(_: object) -> dict[str, object]:
        process.kill()
        return {}

    daemon.answers |= {"status": running("0.0.1", process.pid), "stop": end}
    lifecycle.make_run(SESSION)
    assert len(launched) == 1
    assert process.wait(60) != 0


def test_a_daemon_that_somebody_else_started_meanwhile_will_do(
    daemon: FakeDaemon, launched: list[Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["reload"] = running()
    is_running = iter((False, True))
    monkeypatch.setattr("rootsd.cli.client.is_running", lambda: next(is_running))
    lifecycle.make_run(SESSION)
    assert daemon.asked("reload") == [{}]
    assert launched == []


@pytest.mark.parametrize("code", [ErrorCode.BUSY, ErrorCode.FAILED])
def test_a_start_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> None:
    def fail(_: Recipe) -> None:
        raise StartFailed("no", "", code)

    monkeypatch.setattr(starter, "launch", fail)
    with pytest.raises(StartFailed):
        lifecycle.make_run(SESSION)


def test_a_stop_waits_until_the_process_is_gone(
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
    monkeypatch.setattr(starter.Departure, "wait", lambda self: False)
    with pytest.raises(Busy, match="does not end") as caught:
        lifecycle.stop(SESSION)
    assert caught.value.remedy == f"kill {process.pid}"


def test_where_none_runs_there_is_nothing_to_stop_or_reload() -> None:
    assert lifecycle.stop(SESSION) is None
    assert not lifecycle.reload_if_running(SESSION)


def test_a_running_daemon_is_told_to_reload(daemon: FakeDaemon) -> None:
    daemon.answers["reload"] = running()
    assert lifecycle.reload_if_running(SESSION)
