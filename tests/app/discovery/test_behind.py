"""What of a tree can wait is worked off in parts: roots of repositories, then projects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.app.discovery.behind import Behind
from rootsd.app.discovery.candidate import Arrival
from rootsd.app.discovery.folders import Folder
from rootsd.host.disk.walk import Place, stamp_of
from support.repos import raw


@pytest.fixture
def folders(tmp_path: Path) -> list[Folder]:
    """Forty, of which the first and the last are not what they were."""
    made = []
    for number in range(40):
        path = tmp_path / f"{number:02}"
        path.mkdir()
        folder = Folder(Place(raw(path), 0), None)
        folder.stamp = stamp_of(raw(path))
        made.append(folder)
    (tmp_path / "00" / ".git").mkdir()
    (tmp_path / "39").rmdir()
    return made


def test_projects_wait_until_all_folders_were_compared(folders: list[Folder]) -> None:
    behind = Behind()
    behind.judge(b"/src/one")
    behind.compare(folders, Arrival.FOUND)
    assert behind.take_changed(1) == [folders[0]]
    assert behind.take_projects(1) == []
    assert [os.path.basename(each.place.path) for each in behind.take_changed(2)] == [b"39"]
    assert behind.arrival is Arrival.FOUND
    assert behind
    assert behind.take_projects(1) == [b"/src/one"]
    assert not behind


def test_later_folders_take_the_place_of_earlier_ones(folders: list[Folder]) -> None:
    behind = Behind()
    behind.compare(folders, Arrival.FOUND)
    behind.compare(folders[-1:], Arrival.MADE)
    assert behind.take_changed(100) == folders[-1:]
    assert not behind


def test_what_was_looked_at_waits_no_more(folders: list[Folder]) -> None:
    behind = Behind()
    behind.judge(b"/src/one")
    behind.compare(folders, Arrival.MADE)
    behind.clear()
    assert not behind
    assert behind.take_changed(100) == []
    assert behind.take_projects(100) == []
