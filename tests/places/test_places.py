"""The folders of configuration, store, and logs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rootsd.places.base_folders import PLACE_VARIABLES, folder_of_daemon
from rootsd.places.daemon_folders import find_places


def test_rootsd_dir_holds_everything(rootsd_dir: Path) -> None:
    places = find_places()
    assert places.config_file == bytes(rootsd_dir / "config/config.toml")
    assert places.state == bytes(rootsd_dir / "state")
    assert places.log == bytes(rootsd_dir / "state/log")


@pytest.mark.needs("linux")
def test_without_it_the_folders_follow_the_xdg_variables_and_then_the_recorded_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x/config")
    for set_to, state in (("/x/state", b"/x/state"), (None, b"/y/state")):
        if set_to:
            monkeypatch.setenv("XDG_STATE_HOME", set_to)
        else:
            monkeypatch.delenv("XDG_STATE_HOME")
        places = find_places({"XDG_CONFIG_HOME": "/y/config", "XDG_STATE_HOME": "/y/state"})
        assert places.config == b"/x/config/rootsd"
        assert places.state == state + b"/rootsd"
        assert places.log == state + b"/rootsd/log"


@pytest.mark.needs("linux")
def test_a_relative_folder_is_ignored_by_the_daemon_and_by_the_wall(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in PLACE_VARIABLES:
        monkeypatch.setenv(name, "rel")
    places = find_places(dict.fromkeys(PLACE_VARIABLES, "rel"))
    assert (
        places.config == folder_of_daemon("XDG_CONFIG_HOME") == bytes(tmp_path / ".config/rootsd")
    )
    assert places.state == folder_of_daemon("XDG_STATE_HOME")
    assert places.state == bytes(tmp_path / ".local/state/rootsd")


@pytest.mark.needs("linux")
@pytest.mark.parametrize("recorded", ["/recorded", "", "rel"])
def test_the_wall_keeps_its_files_where_the_daemon_does_whatever_a_client_strips(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: str
) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "/of-this-shell")
    assert folder_of_daemon("XDG_STATE_HOME") == b"/of-this-shell/rootsd"
    record = tmp_path / ".local/state/rootsd/start.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"environment": {"XDG_STATE_HOME": recorded}}))
    folder = recorded if recorded == "/recorded" else f"{tmp_path}/.local/state"
    assert folder_of_daemon("XDG_STATE_HOME") == f"{folder}/rootsd".encode()
    record.unlink()
    os.mkfifo(record)  # a read would hang
    assert folder_of_daemon("XDG_STATE_HOME") == b"/of-this-shell/rootsd"
