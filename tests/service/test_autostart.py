"""Starting a daemon for a bridge: whether it is allowed, only once, and by which means."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rootsd.core.errors import DaemonUnreachable, ErrorCode
from rootsd.net.listener import Listener, listen
from rootsd.places.runtime_dir import find_runtime_dir
from rootsd.service import autostart, detect, launcher, start_record
from rootsd.service.launcher import StartFailed
from rootsd.service.start_record import StartPlan

HANG_GUARD_S = 30


def recipe() -> StartPlan:
    return start_record.plan_start()


@pytest.fixture
def listeners() -> Iterator[list[Listener]]:
    opened: list[Listener] = []
    yield opened
    for listener in opened:
        listener.close()


@pytest.fixture
def launched(
    monkeypatch: pytest.MonkeyPatch, listeners: list[Listener]
) -> list[StartPlan | StartFailed]:
    """The recipes that were followed; each makes somebody listen. Errors put here come first."""
    done: list[StartPlan | StartFailed] = []

    def launch(recipe: StartPlan) -> None:
        if done and isinstance(done[0], StartFailed):
            raise done.pop(0)  # type: ignore[misc]
        done.append(recipe)
        listeners.append(listen(find_runtime_dir().mcp_socket))

    monkeypatch.setattr(launcher, "launch", launch)
    return done


Launched = list[StartPlan | StartFailed]


def test_without_a_start_record_nothing_is_started_or_created(
    launched: Launched, rootsd_dir: Path
) -> None:
    with pytest.raises(DaemonUnreachable, match="not running") as caught:
        autostart.start_daemon()
    assert caught.value.remedy == "rootsd up"
    assert not rootsd_dir.exists()


def test_after_a_down_neither_a_daemon_nor_a_service_is_started(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(detect, "start_service", started.append)
    start_record.save_start_record(recipe())
    start_record.mark_stopped()
    with pytest.raises(DaemonUnreachable, match="rootsd down"):
        autostart.start_daemon()
    assert launched == started == []


def test_an_installed_service_is_started_even_without_a_start_record(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def start(environment: object) -> bool:
        asked.append(environment)
        return True

    monkeypatch.setattr(detect, "start_service", start)
    autostart.start_daemon()
    start_record.save_start_record(recipe())
    autostart.start_daemon()
    assert asked == [{}, recipe().environment]
    assert launched == []


def test_simultaneous_callers_start_one_daemon(launched: Launched) -> None:
    start_record.save_start_record(recipe())
    threads = [threading.Thread(target=autostart.start_daemon) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_GUARD_S)
    assert launched == [recipe()]


def test_a_start_waits_for_an_ending_daemon_but_not_forever(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_record.save_start_record(recipe())
    busy = StartFailed("another rootsd is at work", "", ErrorCode.BUSY)
    with monkeypatch.context() as impatient:
        impatient.setattr(launcher, "BUSY_TIMEOUT_S", 0.0)
        launched.append(busy)
        with pytest.raises(StartFailed, match="at work"):
            autostart.start_daemon()
    launched += [busy, busy]
    autostart.start_daemon()
    assert launched == [recipe()]


def test_a_down_during_the_wait_is_respected(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_record.save_start_record(recipe())
    recall: Callable[[], StartPlan] = start_record.load_start_record
    calls = []

    def recall_and_forbid() -> StartPlan:
        calls.append(recall())
        if len(calls) == 2:  # the one before the lock
            start_record.mark_stopped()
        return calls[-1]

    monkeypatch.setattr(start_record, "load_start_record", recall_and_forbid)
    with pytest.raises(DaemonUnreachable, match="rootsd down"):
        autostart.start_daemon()
    assert launched == []


@pytest.mark.parametrize("recorded", [False, True])
def test_as_a_program_it_prints_the_outcome(*, recorded: bool) -> None:
    said = b'error {"code": "unreachable", "message": "the daemon is not running", '
    if recorded:
        start_record.save_start_record(recipe())
        with listen(find_runtime_dir().mcp_socket):
            out = run_program()
        said = b"ready\n"
    else:
        out = run_program()
    assert out.startswith(said)


def run_program() -> bytes:
    return subprocess.run(
        [sys.executable, "-I", "-m", "rootsd.service.autostart"],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"]},
        capture_output=True,
        check=True,
        timeout=HANG_GUARD_S,
    ).stdout
