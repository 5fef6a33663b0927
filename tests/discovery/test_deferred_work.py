"""The deferred work of a tree runs in parts: repositories first, then projects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.discovery.candidate import Arrival
from rootsd.discovery.folder_tree import FolderNode, changed_folders
from rootsd.discovery.parent_tree import DeferredWork
from rootsd.disk.walk import WalkFolder, read_stamp
from support.repositories import raw


@pytest.fixture
def folders(tmp_path: Path) -> list[FolderNode]:
    """Return forty folders; the first and the last have changed."""
    made = []
    for number in range(40):
        path = tmp_path / f"{number:02}"
        path.mkdir()
        folder = FolderNode(WalkFolder(raw(path), 0), None)
        folder.stamp = read_stamp(raw(path))
        made.append(folder)
    (tmp_path / "00" / ".git").mkdir()
    (tmp_path / "39").rmdir()
    return made


def test_projects_wait_until_all_folders_were_compared(folders: list[FolderNode]) -> None:
    behind = DeferredWork()
    behind.add_project(b"/src/one")
    behind.set_folders(folders, Arrival.FOUND)
    assert changed_folders(behind.take_folders(1)) == [folders[0]]
    assert behind.take_projects(1) == []
    assert [
        os.path.basename(each.place.path) for each in changed_folders(behind.take_folders(4))
    ] == [b"39"]
    assert behind.arrival is Arrival.FOUND
    assert behind
    assert behind.take_projects(1) == [b"/src/one"]
    assert not behind


def test_later_work_replaces_earlier_work(folders: list[FolderNode]) -> None:
    behind = DeferredWork()
    behind.set_folders(folders, Arrival.FOUND)
    behind.set_folders(folders[-1:], Arrival.CREATED)
    assert changed_folders(behind.take_folders(100)) == folders[-1:]
    assert not behind


def test_finished_work_is_no_longer_due(folders: list[FolderNode]) -> None:
    behind = DeferredWork()
    behind.add_project(b"/src/one")
    behind.set_folders(folders, Arrival.CREATED)
    behind.clear()
    assert not behind
    assert changed_folders(behind.take_folders(100)) == []
    assert behind.take_projects(100) == []
