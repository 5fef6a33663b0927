"""The nodes of a tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.app.discovery.folders import Folder, Role, changed, stamp_of_leaf
from rootsd.core.model import ProjectKind
from rootsd.host.disk.walk import Place, Zone, stamp_of
from support.repos import raw


def test_all_yields_a_folder_and_everything_below_it() -> None:
    top = Folder(Place(b"/src", 4), None)
    one = Folder(Place(b"/src/one", 3, Zone.REPOSITORIES), top)
    top.adopt(b"one", one)
    two = Folder(Place(b"/src/one/two", 2), one)
    one.adopt(b"two", two)
    assert set(top.all()) == {top, one, two}
    assert set(one.all()) == {one, two}
    assert one.zone is Zone.REPOSITORIES


@pytest.fixture
def tree() -> Folder:
    top = Folder(Place(b"/", 4, top=True), None)
    one = Folder(Place(b"/one", 3), top)
    top.adopt(b"one", one)
    two = Folder(Place(b"/one/two", 2, Zone.REPOSITORIES), one)
    one.adopt(b"two", two)
    top.role = one.role = Role.FRONTIER
    two.role = Role.LEAF
    one.project, two.project = ProjectKind.PROJECT, ProjectKind.GIT
    one.zone = Zone.REPOSITORIES
    for number, folder in enumerate((top, one, two), 1):
        folder.stamp = (number, number, number, number)
    return top


def _facts(folder: Folder) -> tuple[object, ...]:
    above = folder.above.place if folder.above is not None else None
    kids = set(folder.kids)
    return folder.place, above, kids, folder.role, folder.project, folder.zone, folder.stamp


def test_a_tree_that_was_kept_is_planted_as_it_was(tree: Folder) -> None:
    planted = Folder.planted(tree.kept(b"rules"), tree.place)
    assert [_facts(folder) for folder in planted] == [_facts(folder) for folder in tree.all()]


def test_an_unreadable_folder_is_left_for_its_holder_to_find_again(tree: Folder) -> None:
    one = tree.kids[b"one"]
    one.kids[b"two"].role = Role.UNREADABLE
    top, again = Folder.planted(tree.kept(b"rules"), tree.place)
    assert again.stamp is None
    assert again.kids == {}
    assert top.stamp == tree.stamp


def test_changed_are_those_without_their_stamp_or_out_of_reach(tmp_path: Path) -> None:
    names = ("same", "entry", "other", "gone", "file", "unknown", "last")
    folders = {}
    for name in names:
        (tmp_path / name).mkdir()
        folder = folders[name] = Folder(Place(raw(tmp_path / name), 1), None)
        folder.stamp = stamp_of(folder.place.path)
    (tmp_path / "entry" / "new").mkdir()
    (tmp_path / "other").rename(tmp_path / "elsewhere")
    (tmp_path / "other").mkdir()
    (tmp_path / "gone").rmdir()
    (tmp_path / "file").rmdir()
    (tmp_path / "file").touch()
    folders["unknown"].stamp = None
    found = [os.path.basename(each.place.path).decode() for each in changed(folders.values())]
    assert found == ["entry", "other", "gone", "file", "unknown"]


@pytest.mark.parametrize("which", range(4))
def test_a_folder_has_its_stamp_only_if_all_of_it_is_the_same(tmp_path: Path, which: int) -> None:
    folder = Folder(Place(raw(tmp_path), 1), None)
    stamp = stamp_of(raw(tmp_path))
    assert stamp is not None
    folder.stamp = stamp
    assert changed([folder]) == []
    other = list(stamp)
    other[which] += 1
    folder.stamp = (other[0], other[1], other[2], other[3])
    assert changed([folder]) == [folder]


def test_the_stamp_of_a_leaf_is_kept_once_it_is_old_enough(tmp_path: Path) -> None:
    stamp = stamp_of(raw(tmp_path))
    assert stamp is not None
    assert stamp_of_leaf(raw(tmp_path), stamp[0] + 1) == stamp
    assert stamp_of_leaf(raw(tmp_path), stamp[0]) is None
    assert stamp_of_leaf(raw(tmp_path / "gone"), stamp[0] + 1) is None


def test_a_folder_holds_what_it_adopts_until_it_is_dismissed() -> None:
    top = Folder(Place(b"/", 4, top=True), None)
    kid = Folder(Place(b"/one", 3), top)
    top.dismiss(b"one")
    top.adopt(b"one", kid)
    assert dict(top.kids) == {b"one": kid}
    assert not kid.kids
    top.dismiss(b"one")
    assert not top.kids
