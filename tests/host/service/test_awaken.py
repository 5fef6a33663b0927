"""Having a daemon run on behalf of a bridge: allowed or not, once for all, through whom."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rootsd.core.errors import DaemonUnreachable, ErrorCode
from rootsd.host.folders import run_folder
from rootsd.host.ipc.sockets import Listener, listen
from rootsd.host.service import awaken, record, starter, supervisor
from rootsd.host.service.record import Recipe
from rootsd.host.service.starter import StartFailed

HANG_GUARD_S = 30
RECIPE = Recipe(("rootsd",), {"XDG_CONFIG_HOME": "/c"}, "/log")


@pytest.fixture
def listeners() -> Iterator[list[Listener]]:
    opened: list[Listener] = []
    yield opened
    for listener in opened:
        listener.close()


@pytest.fixture
def launched(
    monkeypatch: pytest.MonkeyPatch, listeners: list[Listener]
) -> list[Recipe | StartFailed]:
    """The recipes that were followed; each makes somebody listen. Errors put here come first."""
    done: list[Recipe | StartFailed] = []

    def launch(recipe: Recipe) -> None:
        if done and isinstance(done[0], StartFailed):
            raise done.pop(0)  # type: ignore[misc]
        done.append(recipe)
        listeners.append(listen(run_folder().mcp_socket))

    monkeypatch.setattr(starter, "launch", launch)
    return done


Launched = list[Recipe | StartFailed]


def test_where_nothing_was_recorded_nothing_is_started_and_nothing_made(
    launched: Launched, rootsd_dir: Path
) -> None:
    with pytest.raises(DaemonUnreachable, match="not running") as caught:
        awaken.awaken()
    assert caught.value.remedy == "rootsd up"
    assert not rootsd_dir.exists()


def test_what_up_recorded_is_started(launched: Launched) -> None:
    record.remember(RECIPE)
    awaken.awaken()
    assert launched == [RECIPE]


def test_after_a_down_nothing_is_started_not_even_a_service(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(supervisor, "start_service", started.append)
    record.remember(RECIPE)
    record.forbid()
    with pytest.raises(DaemonUnreachable, match="rootsd down"):
        awaken.awaken()
    assert launched == started == []


def test_a_service_comes_first_also_where_nothing_was_recorded(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def start(environment: object) -> bool:
        asked.append(environment)
        return True

    monkeypatch.setattr(supervisor, "start_service", start)
    awaken.awaken()
    record.remember(RECIPE)
    awaken.awaken()
    assert asked == [{}, RECIPE.environment]
    assert launched == []


def test_many_at_once_start_one(launched: Launched) -> None:
    record.remember(RECIPE)
    threads = [threading.Thread(target=awaken.awaken) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_GUARD_S)
    assert launched == [RECIPE]


def test_a_daemon_that_is_about_to_end_is_waited_for(launched: Launched) -> None:
    record.remember(RECIPE)
    busy = StartFailed("another rootsd is at work", "", ErrorCode.BUSY)
    launched += [busy, busy]
    awaken.awaken()
    assert launched == [RECIPE]


def test_one_that_never_ends_is_told(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "BUSY_PATIENCE", 0.0)
    record.remember(RECIPE)
    launched.append(StartFailed("another rootsd is at work", "", ErrorCode.BUSY))
    with pytest.raises(StartFailed, match="at work"):
        awaken.awaken()


def test_a_down_while_it_waits_is_heeded(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    record.remember(RECIPE)
    recall: Callable[[], Recipe] = record.recall
    calls = []

    def recall_and_forbid() -> Recipe:
        calls.append(recall())
        if len(calls) == 2:  # the one before the lock
            record.forbid()
        return calls[-1]

    monkeypatch.setattr(record, "recall", recall_and_forbid)
    with pytest.raises(DaemonUnreachable, match="rootsd down"):
        awaken.awaken()
    assert launched == []


@pytest.mark.parametrize("recorded", [False, True])
def test_as_a_program_it_says_what_came_of_it(*, recorded: bool) -> None:
    said = b'error {"code": "unreachable", "message": "the daemon is not running", '
    if recorded:
        record.remember(RECIPE)
        with listen(run_folder().mcp_socket):
            out = run_program()
        said = b"ready\n"
    else:
        out = run_program()
    assert out.startswith(said)


def run_program() -> bytes:
    return subprocess.run(
        [sys.executable, "-P", "-m", "rootsd.host.service.awaken"],
        env={"ROOTSD_DIR": os.environ["ROOTSD_DIR"]},
        capture_output=True,
        check=True,
        timeout=HANG_GUARD_S,
    ).stdout
