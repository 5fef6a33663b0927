"""The one door to the programs of service managers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.service import manager
from rootsd.service.manager import NOT_RUN, ProgramResult, ServiceCommandFailed, ServiceState


def test_a_program_finds_the_runtime_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "USER_RUNTIME", tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    done = manager.run_program(["sh", "-c", "echo $XDG_RUNTIME_DIR; echo no >&2; exit 3"])
    assert done == ProgramResult(3, f"{tmp_path}/{os.getuid()}\n", "no")


def test_a_program_that_is_not_there_has_not_run() -> None:
    done = manager.run_program(["/nowhere/systemctl"])
    assert done.status == NOT_RUN
    assert "/nowhere/systemctl" in done.err


def test_a_program_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(ServiceCommandFailed, match="a b: no") as caught:
        manager.run_checked(lambda words: ProgramResult(1, "", "no"), ["a", "b"])
    assert caught.value.remedy == "a b"


@pytest.mark.parametrize(
    ("active", "running"),
    [("active", True), ("activating", True), ("running", True), ("failed", False)],
)
def test_some_states_have_a_daemon(active: str, *, running: bool) -> None:
    assert ServiceState(active, True, True, None, 0, "").is_running is running
