"""How the daemon was last started: remembered, recalled, forbidden; and with which places."""

from __future__ import annotations

import errno
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.core.errors import DaemonUnreachable
from rootsd.host import folders
from rootsd.host.private import NotPrivate
from rootsd.host.service import record

HANG_GUARD_S = 60


def test_the_recipe_of_this_process_names_its_python_and_places_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, rootsd_dir: Path
) -> None:
    for name in ("XDG_STATE_HOME", "LC_TIME"):
        monkeypatch.setenv(name, "/x")
    for name in ("SECRET_TOKEN", "CLAUDECODE", "PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, "/y")
    made = record.recipe_here(b"/logs")
    assert made.command[:4] == (sys.executable, "-P", "-m", "rootsd")
    assert made.log == "/logs/daemon.log"
    assert made.environment["ROOTSD_DIR"] == str(rootsd_dir)
    assert made.environment["LC_TIME"] == "/x"
    assert "XDG_STATE_HOME" not in made.environment  # with ROOTSD_DIR it decides nothing
    assert "/y" not in made.environment.values()


REMEMBERS = """
from rootsd.host.private import NotPrivate
from rootsd.host.service import record
for _ in range(200):
    record.remember(record.recipe_here(b"/log"))
"""


def test_of_many_who_remember_at_once_each_leaves_a_whole_recipe() -> None:
    command = [sys.executable, "-c", REMEMBERS]
    all_at_once = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    assert [each.communicate(timeout=HANG_GUARD_S)[1] for each in all_at_once] == [b""] * 4
    assert record.recall() == record.recipe_here(b"/log")
    assert [file.name for file in record.start_folder().iterdir()] == [record.RECIPE_NAME]


def test_a_remembered_recipe_is_recalled() -> None:
    made = record.recipe_here(b"/logs")
    record.remember(made)
    assert record.recall() == made


def test_a_recipe_that_is_written_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = record.recipe_here(b"/logs")
    record.remember(made)
    record.forbid()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    record.remember(made)
    assert record.recall() == made
    with pytest.raises(NotPrivate, match="No space left") as refused:
        record.remember(record.recipe_here(b"/other"))
    assert refused.value.remedy == "free some space on that disk, then try again"
    assert record.recall() == made
    assert not list(record.start_folder().glob(f"{record.RECIPE_NAME}.*"))


def test_what_is_remembered_is_private() -> None:
    record.remember(record.recipe_here(b"/logs"))
    file = record.start_folder() / record.RECIPE_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_without_a_recipe_the_next_command_is_named() -> None:
    with pytest.raises(DaemonUnreachable, match="not running") as caught:
        record.recall()
    assert caught.value.remedy == "rootsd up"


_RECIPE = '{"command": ["x"], "environment": {%s}, "log": "/l"}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"command": 1}',
        "\0",
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 100_000,
        _RECIPE.replace('["x"]', '"rootsd"') % "",
        _RECIPE.replace('["x"]', "[]") % "",
        _RECIPE.replace('["x"]', r'["\ud800"]') % "",
        _RECIPE.replace('["x"]', r'["\u0000"]') % "",
        _RECIPE % '"A": 5',
        _RECIPE % '"A=B": "x"',
    ],
)
def test_a_damaged_recipe_is_an_error_that_up_mends(content: str) -> None:
    made = record.recipe_here(b"/logs")
    record.remember(made)
    file = record.start_folder() / record.RECIPE_NAME
    file.write_text(content)
    with pytest.raises(DaemonUnreachable, match=r"start\.json cannot be read: ") as caught:
        record.recall()
    assert caught.value.remedy == "rootsd up"
    assert record.remembered_places() == {}
    record.remember(made)
    assert record.recall() == made


def test_after_down_no_recipe_may_be_followed_until_the_next_up() -> None:
    record.remember(record.recipe_here(b"/logs"))
    record.forbid()
    with pytest.raises(DaemonUnreachable, match="stopped by rootsd down"):
        record.recall()
    record.remember(record.recipe_here(b"/logs"))
    assert record.recall() == record.recipe_here(b"/logs")


def test_the_folder_of_the_recipe_does_not_follow_from_xdg(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(folders.OVERRIDE)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert record.start_folder().is_relative_to(tmp_path)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The usual places, in a shell that sets no variable for them."""
    monkeypatch.delenv(folders.OVERRIDE)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in record.PLACE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def start(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Have it started in a shell that sets these, and go back to one that sets none."""
    with monkeypatch.context() as shell:
        for name, value in variables.items():
            shell.setenv(name, value)
        record.remember(record.recipe_here(b"/logs"))


def test_where_a_shell_sets_no_places_those_of_the_last_start_count(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert record.place_variables() == {}
    start(monkeypatch, XDG_STATE_HOME="/x/state", XDG_CONFIG_HOME="relative")
    assert record.place_variables() == {"XDG_STATE_HOME": "/x/state"}
    assert record.other_places() == ""
    start(monkeypatch)  # from such a shell it is started with them again
    assert record.remembered_places() == {"XDG_STATE_HOME": "/x/state"}
    monkeypatch.setenv("XDG_CONFIG_HOME", "/y")
    assert record.place_variables() == {"XDG_STATE_HOME": "/x/state", "XDG_CONFIG_HOME": "/y"}


def test_a_shell_that_names_other_places_is_told_until_the_daemon_is_down(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/y\x1b[2J")
    record.ensure_same_places()  # it was never started
    start(monkeypatch, XDG_CONFIG_HOME="/x")
    with pytest.raises(record.OtherPlaces, match="started with /x") as caught:
        record.ensure_same_places()
    assert "\x1b" not in caught.value.message
    record.forbid()
    record.ensure_same_places()
    assert record.other_places() != ""


def test_a_variable_that_says_what_holds_without_it_is_no_other_place(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{home}/.config/")
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/.local/state")
    assert record.other_places() == ""
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert record.other_places() == (
        "XDG_STATE_HOME is /x here, and the daemon was started with none"
    )


def test_with_rootsd_dir_no_variable_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    start(monkeypatch, XDG_STATE_HOME="/x")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/y")
    assert (record.place_variables(), record.other_places()) == ({}, "")
