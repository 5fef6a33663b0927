"""The nodes of a tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.core.model import ProjectKind
from rootsd.discovery.folder_tree import FolderNode, FolderRole, changed_folders, leaf_stamp
from rootsd.disk.walk import ProposalScope, WalkFolder, read_stamp
from support.repositories import raw


def test_all_yields_a_folder_and_everything_below_it() -> None:
    top = FolderNode(WalkFolder(b"/src", 4), None)
    one = FolderNode(WalkFolder(b"/src/one", 3, ProposalScope.REPOSITORIES), top)
    top.add_child(b"one", one)
    two = FolderNode(WalkFolder(b"/src/one/two", 2), one)
    one.add_child(b"two", two)
    assert set(top.all()) == {top, one, two}
    assert set(one.all()) == {one, two}
    assert one.zone is ProposalScope.REPOSITORIES


@pytest.fixture
def tree() -> FolderNode:
    top = FolderNode(WalkFolder(b"/", 4, top=True), None)
    one = FolderNode(WalkFolder(b"/one", 3), top)
    top.add_child(b"one", one)
    two = FolderNode(WalkFolder(b"/one/two", 2, ProposalScope.REPOSITORIES), one)
    one.add_child(b"two", two)
    top.role = one.role = FolderRole.FRONTIER
    two.role = FolderRole.LEAF
    one.project, two.project = ProjectKind.PROJECT, ProjectKind.GIT
    one.zone = ProposalScope.REPOSITORIES
    for number, folder in enumerate((top, one, two), 1):
        folder.stamp = (number, -number, number, number)
    return top


def _facts(folder: FolderNode) -> tuple[object, ...]:
    above = folder.container.place if folder.container is not None else None
    kids = set(folder.children)
    return folder.place, above, kids, folder.role, folder.project, folder.zone, folder.stamp


def test_a_saved_tree_is_restored(tree: FolderNode) -> None:
    planted = FolderNode.from_snapshot(tree.to_snapshot(b"rules"), tree.place)
    assert [_facts(folder) for folder in planted] == [_facts(folder) for folder in tree.all()]


def test_an_unreadable_folder_is_left_to_the_next_walk(tree: FolderNode) -> None:
    one = tree.children[b"one"]
    one.children[b"two"].role = FolderRole.UNREADABLE
    top, again = FolderNode.from_snapshot(tree.to_snapshot(b"rules"), tree.place)
    assert again.stamp is None
    assert again.children == {}
    assert top.stamp == tree.stamp


def test_folders_with_another_stamp_or_unreachable_ones_are_changed(tmp_path: Path) -> None:
    names = ("same", "entry", "other", "gone", "file", "unknown", "last")
    folders = {}
    for name in names:
        (tmp_path / name).mkdir()
        folder = folders[name] = FolderNode(WalkFolder(raw(tmp_path / name), 1), None)
        folder.stamp = read_stamp(folder.place.path)
    (tmp_path / "entry" / "new").mkdir()
    (tmp_path / "other").rename(tmp_path / "elsewhere")
    (tmp_path / "other").mkdir()
    (tmp_path / "gone").rmdir()
    (tmp_path / "file").rmdir()
    (tmp_path / "file").touch()
    folders["unknown"].stamp = None
    found = [
        os.path.basename(each.place.path).decode() for each in changed_folders(folders.values())
    ]
    assert found == ["entry", "other", "gone", "file", "unknown"]


@pytest.mark.parametrize("which", range(4))
def test_a_stamp_matches_only_if_all_parts_are_equal(tmp_path: Path, which: int) -> None:
    folder = FolderNode(WalkFolder(raw(tmp_path), 1), None)
    stamp = read_stamp(raw(tmp_path))
    assert stamp is not None
    folder.stamp = stamp
    assert changed_folders([folder]) == []
    other = list(stamp)
    other[which] += 1
    folder.stamp = (other[0], other[1], other[2], other[3])
    assert changed_folders([folder]) == [folder]


def test_the_stamp_of_a_leaf_is_saved_once_it_is_old_enough(tmp_path: Path) -> None:
    stamp = read_stamp(raw(tmp_path))
    assert stamp is not None
    assert leaf_stamp(raw(tmp_path), stamp[0] + 1) == stamp
    assert leaf_stamp(raw(tmp_path), stamp[0]) is None
    assert leaf_stamp(raw(tmp_path / "gone"), stamp[0] + 1) is None


def test_a_folder_keeps_an_added_child_until_it_is_removed() -> None:
    top = FolderNode(WalkFolder(b"/", 4, top=True), None)
    kid = FolderNode(WalkFolder(b"/one", 3), top)
    top.remove_child(b"one")
    top.add_child(b"one", kid)
    assert dict(top.children) == {b"one": kid}
    assert not kid.children
    top.remove_child(b"one")
    assert not top.children
