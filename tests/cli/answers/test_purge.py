"""Purging the data that rootsd stored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.cli.answers import purging
from rootsd.cli.answers.invocation import Invocation
from rootsd.connect.record import ConnectRecord
from rootsd.connect.wiring import Consent
from rootsd.core.errors import Busy
from rootsd.files.lock import DaemonLock, LockRecord
from rootsd.service import start_record
from support.client_home import WISH, ClientHome


@pytest.fixture
def places(rootsd_dir: Path) -> list[Path]:
    """Folders with files, as after some use."""
    made = [rootsd_dir / name for name in ("config", "state", "data", "run")]
    for folder in made:
        folder.mkdir(parents=True, mode=0o700)
        (folder / "file").touch()
    (rootsd_dir / "state" / "log").mkdir()
    return made


def test_every_folder_of_rootsd_is_removed_and_nothing_else(
    places: list[Path], rootsd_dir: Path
) -> None:
    (rootsd_dir / "mine").touch()
    gone = purging.purge_data(Invocation())
    assert set(places) <= set(gone)
    assert os.listdir(rootsd_dir) == ["mine"]
    assert purging.purge_data(Invocation()) == []


@pytest.mark.needs("linux")
def test_a_folder_of_a_wall_that_cannot_be_listed_is_removed(
    places: list[Path], rootsd_dir: Path
) -> None:
    work = rootsd_dir / "state/confine/name/kept/folders/x/work/work"
    work.mkdir(parents=True, mode=0)
    assert set(places) <= set(purging.purge_data(Invocation()))
    assert os.listdir(rootsd_dir) == []


def test_the_store_of_a_running_daemon_is_kept(places: list[Path], rootsd_dir: Path) -> None:
    holder = LockRecord(os.getpid(), "test", {})
    with DaemonLock.acquire(rootsd_dir / "state", holder), pytest.raises(Busy):
        purging.purge_data(Invocation())
    assert all((folder / "file").exists() for folder in places)


def test_a_link_in_the_place_of_a_folder_is_not_followed(rootsd_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    rootsd_dir.mkdir()
    (rootsd_dir / "config").symlink_to(tmp_path)
    assert purging.purge_data(Invocation()) == []
    assert (tmp_path / "precious").exists()


def test_a_folder_that_cannot_be_removed_is_reported(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(purging.FolderNotRemoved, match="Permission denied"):
        purging.purge_data(Invocation())


def test_in_a_shell_with_other_folders_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROOTSD_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    start_record.record_start()
    purging.ensure_places_for_purge()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    with pytest.raises(
        start_record.PlacesMismatch, match=f"started with {tmp_path}/state"
    ) as caught:
        purging.ensure_places_for_purge()
    assert caught.value.remedy.startswith("env -u XDG_CONFIG_HOME -u XDG_STATE_HOME rootsd")


def test_a_purge_waits_until_every_client_is_disconnected(
    places: list[Path], tmp_path: Path
) -> None:
    """Otherwise nothing would know the commands of servers from before they were wrapped."""
    invocation = Invocation()
    purging.ensure_clients_are_disconnected(invocation)
    home = ClientHome(tmp_path)
    home.record = ConnectRecord(invocation.places.state)
    home.wiring("cline").connect(WISH, Consent.NONE)
    with pytest.raises(purging.ClientsConnected, match="cline") as refused:
        purging.ensure_clients_are_disconnected(invocation)
    assert refused.value.remedy == "rootsd disconnect --all"
    home.wiring("cline").take_back(None)
    purging.ensure_clients_are_disconnected(invocation)
