"""The record of the daemon's last start: written, read, forbidden; and its folders."""

from __future__ import annotations

import errno
import json
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rootsd.core.errors import DaemonUnreachable
from rootsd.files.private_files import NotPrivate
from rootsd.places import runtime_dir
from rootsd.places.base_folders import PLACE_VARIABLES, RECORD_NAME
from rootsd.places.daemon_folders import find_places
from rootsd.service import start_record
from support.sizes import Sizes

HANG_GUARD_S = 60
OWN_COMMANDS = tuple(
    (sys.executable, "-I", "-m", "rootsd", *words)
    for words in (("daemon", "--detach"), ("sync", "run"))
)


def test_a_start_uses_only_our_python_and_variables_that_locate_folders(
    monkeypatch: pytest.MonkeyPatch, rootsd_dir: Path
) -> None:
    for name in ("XDG_STATE_HOME", "LC_TIME"):
        monkeypatch.setenv(name, "/x")
    for name in ("SECRET_TOKEN", "CLAUDECODE", "PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, "/y")
    made = start_record.plan_start()
    assert (made.daemon, made.sync) == OWN_COMMANDS
    assert made.log == rootsd_dir / "state/log/daemon.log"
    assert made.environment["ROOTSD_DIR"] == str(rootsd_dir)
    assert made.environment["LC_TIME"] == "/x"
    assert "XDG_STATE_HOME" not in made.environment  # with ROOTSD_DIR it has no effect
    assert "/y" not in made.environment.values()


HOSTILE = {
    "HOME": "/x", "ROOTSD_DIR": "/x", "USER": "x", "LOGNAME": "x", "PATH": "/x",
    "PYTHONPATH": "/x", "PYTHONHOME": "/x", "PYTHONSTARTUP": "/x", "LD_PRELOAD": "/x.so",
    "LD_AUDIT": "/x.so", "DYLD_INSERT_LIBRARIES": "/x.so", "GCONV_PATH": "/x", "LC_x/../y": "/x",
    "TMPDIR": "x", "XDG_RUNTIME_DIR": "x", "XDG_CONFIG_HOME": "x",
    "DBUS_SESSION_BUS_ADDRESS": "unixexec:path=/x",
}  # fmt: skip
"""What a record must not bring into the daemon: programs to load, other places, relative paths."""


def plant(**keys: object) -> None:
    """Write a record as somebody else would."""
    folder = start_record.start_folder()
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    (folder / RECORD_NAME).write_text(json.dumps(keys))


def test_a_planted_record_names_neither_the_program_nor_its_log() -> None:
    plant(command=["sh", "-c", "touch /x"], environment={"LANG": "C"}, log="/x/.bashrc")
    loaded = start_record.load_start_record()
    assert (loaded.daemon, loaded.sync) == OWN_COMMANDS
    assert loaded.log == start_record.plan_start().log
    assert loaded.environment["LANG"] == "C"


@pytest.mark.parametrize("bus", ["unixexec:path=/x", "unix:path=/run/bus;unixexec:path=/x"])
def test_a_planted_record_brings_no_variable_that_runs_or_moves_anything(
    bus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(environment={**HOSTILE, "DBUS_SESSION_BUS_ADDRESS": bus})
    assert start_record.load_start_record().environment == own_variables()
    monkeypatch.setattr(start_record, "_is_kept", lambda *_: True)  # the control: no check
    assert start_record.load_start_record().environment.items() >= {("LD_PRELOAD", "/x.so")}


def own_variables() -> dict[str, str]:
    name = pwd.getpwuid(os.getuid()).pw_name
    return {
        "HOME": os.environ["HOME"], "ROOTSD_DIR": os.environ["ROOTSD_DIR"],
        "USER": name, "LOGNAME": name,
    }  # fmt: skip


@pytest.mark.parametrize("state", ["", "/x/state"])
def test_the_log_is_where_the_command_line_looks_and_the_record_does_not_depend_on_xdg(
    home: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    if state:
        monkeypatch.setenv("XDG_STATE_HOME", state)
    log = os.fsdecode(find_places(start_record.recorded_places()).log)
    assert start_record.plan_start().logs == Path(log)
    assert start_record.start_folder().is_relative_to(home)


REMEMBERS = """
import sys
from rootsd.service import start_record
for _ in range(int(sys.argv[1])):
    start_record.record_start()
"""


def test_simultaneous_writers_each_leave_a_complete_record(sizes: Sizes) -> None:
    rounds = sizes.pick(test=50, check=200, soak=600)
    command = [sys.executable, "-c", REMEMBERS, str(rounds)]
    all_at_once = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    assert [each.communicate(timeout=HANG_GUARD_S)[1] for each in all_at_once] == [b""] * 4
    assert start_record.load_start_record() == start_record.plan_start()
    assert [file.name for file in start_record.start_folder().iterdir()] == [RECORD_NAME]


def test_a_record_is_private_and_read_back() -> None:
    made = start_record.plan_start()
    start_record.save_start_record(made)
    assert start_record.load_start_record() == made
    file = start_record.start_folder() / RECORD_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_an_unchanged_record_is_not_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    made = start_record.plan_start()
    start_record.save_start_record(made)
    start_record.mark_stopped()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    start_record.save_start_record(made)
    assert start_record.load_start_record() == made
    monkeypatch.setenv("LANG", "C.UTF-8")
    with pytest.raises(NotPrivate, match="No space left") as refused:
        start_record.record_start()
    assert refused.value.remedy == "free some space on that disk, then try again"
    assert start_record.load_start_record() == made
    assert not list(start_record.start_folder().glob(f"{RECORD_NAME}.*"))


def test_without_a_record_and_after_down_the_next_command_is_named_until_the_next_up() -> None:
    with pytest.raises(DaemonUnreachable, match="not running") as caught:
        start_record.load_start_record()
    assert caught.value.remedy == "rootsd up"
    start_record.record_start()
    start_record.ensure_start_allowed()
    start_record.mark_stopped()
    for refused in (start_record.load_start_record, start_record.ensure_start_allowed):
        with pytest.raises(DaemonUnreachable, match="stopped by rootsd down"):
            refused()
    start_record.record_start()
    start_record.ensure_start_allowed()
    assert start_record.load_start_record() == start_record.plan_start()


_RECIPE = '{"environment": {%s}}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"environment": 1}',
        "\0",
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 100_000,
        _RECIPE % '"A": 5',
        _RECIPE % r'"LANG": "\ud800"',
        _RECIPE % r'"LANG": "\u0000"',
    ],
)
def test_a_damaged_record_is_an_error_that_up_repairs(content: str) -> None:
    made = start_record.plan_start()
    start_record.save_start_record(made)
    file = start_record.start_folder() / RECORD_NAME
    file.write_text(content)
    with pytest.raises(DaemonUnreachable, match=r"start\.json cannot be read: ") as caught:
        start_record.load_start_record()
    assert caught.value.remedy == "rootsd up"
    assert start_record.recorded_places() == {}
    start_record.save_start_record(made)
    assert start_record.load_start_record() == made


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The usual places, in a shell that sets no variable for them."""
    monkeypatch.delenv(runtime_dir.OVERRIDE)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in PLACE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def start(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Have it started in a shell that sets these, and go back to one that sets none."""
    with monkeypatch.context() as shell:
        for name, value in variables.items():
            shell.setenv(name, value)
        start_record.record_start()


def test_without_variables_the_folders_of_the_last_start_are_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start_record.plan_start().places == {}
    start(monkeypatch, XDG_STATE_HOME="/x/state", XDG_CONFIG_HOME="relative")
    assert start_record.plan_start().places == {"XDG_STATE_HOME": "/x/state"}
    assert start_record.describe_place_changes() == ""
    start(monkeypatch)  # from such a shell the daemon starts with them again
    assert start_record.recorded_places() == {"XDG_STATE_HOME": "/x/state"}
    monkeypatch.setenv("XDG_CONFIG_HOME", "/y")
    assert start_record.plan_start().places == {
        "XDG_STATE_HOME": "/x/state",
        "XDG_CONFIG_HOME": "/y",
    }


def test_a_shell_with_other_folders_gets_an_error_until_the_daemon_is_down(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/y\x1b[2J")
    start_record.ensure_same_places()  # it was never started
    start(monkeypatch, XDG_CONFIG_HOME="/x")
    with pytest.raises(start_record.PlacesMismatch, match="started with /x") as caught:
        start_record.ensure_same_places()
    assert "\x1b" not in caught.value.message
    start_record.mark_stopped()
    start_record.ensure_same_places()
    assert start_record.describe_place_changes() != ""


def test_a_variable_with_the_default_value_is_not_another_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{home}/.config/")
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/.local/state")
    assert start_record.describe_place_changes() == ""
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert start_record.describe_place_changes() == (
        "XDG_STATE_HOME is /x here, and the daemon was started with none"
    )


def test_on_a_mac_the_default_of_linux_is_another_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(monkeypatch)
    os.renames(home / ".local/state/rootsd", home / "Library/Application Support/rootsd")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/Library/Application Support")
    assert start_record.describe_place_changes() == ""
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/.local/state")
    assert "started with none" in start_record.describe_place_changes()


def test_with_rootsd_dir_other_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    start(monkeypatch, XDG_STATE_HOME="/x")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/y")
    assert (start_record.plan_start().places, start_record.describe_place_changes()) == ({}, "")
