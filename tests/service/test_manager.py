"""Running the programs of service managers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.service import manager
from rootsd.service.manager import (
    NOT_RUN,
    ProgramResult,
    ServiceCommandFailed,
    ServiceState,
    is_running,
)


def test_a_program_gets_the_users_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "USER_RUNTIME", tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    done = manager.run_program(["sh", "-c", "echo $XDG_RUNTIME_DIR; echo no >&2; exit 3"])
    assert done == ProgramResult(3, f"{tmp_path}/{os.getuid()}\n", "no")


def test_a_missing_program_is_an_error() -> None:
    done = manager.run_program(["/nowhere/systemctl"])
    assert done.status == NOT_RUN
    assert "/nowhere/systemctl" in done.err


def test_a_failed_program_is_an_error_with_its_output() -> None:
    with pytest.raises(ServiceCommandFailed, match="a b: no") as caught:
        manager.run_checked(lambda words: ProgramResult(1, "", "no"), ["a", "b"])
    assert caught.value.remedy == "a b"


@pytest.mark.parametrize(
    ("active", "running"),
    [("active", True), ("activating", True), ("running", True), ("failed", False)],
)
def test_some_states_mean_that_a_daemon_runs(active: str, *, running: bool) -> None:
    state = ServiceState(active=active, enabled=True, sockets=True, pid=None, restarts=0, said="")
    assert is_running(state) is running
