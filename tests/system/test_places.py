"""The folders of configuration, store, and logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.system.places import find_places


def test_rootsd_dir_holds_everything(rootsd_dir: Path) -> None:
    places = find_places()
    assert places.config_file == bytes(rootsd_dir / "config/config.toml")
    assert places.state == bytes(rootsd_dir / "state")
    assert places.log == bytes(rootsd_dir / "state/log")


@pytest.mark.needs("linux")
def test_without_it_the_folders_follow_the_xdg_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x/config")
    monkeypatch.setenv("XDG_STATE_HOME", "/x/state")
    places = find_places()
    assert places.config == b"/x/config/rootsd"
    assert places.state == b"/x/state/rootsd"
    assert places.log.startswith(b"/x/state/rootsd/")


@pytest.mark.needs("linux")
def test_recorded_folders_are_used_if_the_environment_sets_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x/config")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    places = find_places({"XDG_CONFIG_HOME": "/y/config", "XDG_STATE_HOME": "/y/state"})
    assert places.config == b"/x/config/rootsd"
    assert places.state == b"/y/state/rootsd"
    assert places.log == b"/y/state/rootsd/log"
