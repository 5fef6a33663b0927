"""The folders of one parent, by path."""

from __future__ import annotations

import pytest

from rootsd.core.model import ProjectKind, ScanCoverage
from rootsd.discovery.folder_tree import FolderNode, FolderRole, FolderTree
from rootsd.disk.walk import WalkFolder

TOP, ONE, TWO = b"/src", b"/src/one", b"/src/one/two"


@pytest.fixture
def tree() -> FolderTree:
    tree = FolderTree()
    for folder in (
        tree.add(WalkFolder(TOP, 4, top=True), None),
        tree.add(WalkFolder(ONE, 3), None),
    ):
        folder.role = FolderRole.FRONTIER
    two = tree.add(WalkFolder(TWO, 2), None)
    two.role = FolderRole.LEAF
    tree.set_project(two, ProjectKind.GIT)
    return tree


def _paths(folders: list[FolderNode]) -> list[bytes]:
    return [folder.place.path for folder in folders]


def test_a_folder_is_added_below_its_containing_folder(tree: FolderTree) -> None:
    assert tree.top is not None
    assert tree.top.children[b"one"].children[b"two"] is tree.get(TWO)
    assert _paths(tree.folders()) == [TOP, ONE, TWO]


def test_a_removed_folder_takes_everything_below_it_along(tree: FolderTree) -> None:
    one, two = tree.get(ONE), tree.get(TWO)
    assert one is not None
    assert two is not None
    assert tree.remove(one) == [one, two]
    assert not tree.has(two)
    assert (len(tree), TWO in tree, tree.has_project(TWO)) == (1, False, False)
    again = tree.add(WalkFolder(ONE, 3), None)
    assert tree.has(again)
    assert not tree.has(one)


def test_without_a_readable_top_nothing_is_covered(tree: FolderTree) -> None:
    assert FolderTree().coverage is ScanCoverage.NONE
    assert tree.top is not None
    tree.hide(tree.top)
    assert tree.coverage is ScanCoverage.NONE
    tree.remove(tree.top)
    assert tree.top is None
    assert (len(tree), tree.coverage) == (0, ScanCoverage.NONE)


def test_a_hidden_folder_is_not_a_project_and_is_not_covered(tree: FolderTree) -> None:
    two = tree.get(TWO)
    assert two is not None
    assert tree.coverage is ScanCoverage.FULL
    tree.hide(two)
    assert (tree.coverage, tree.count_projects()) == (ScanCoverage.PARTIAL, 0)
    tree.set_project(two, ProjectKind.GIT)
    assert (tree.coverage, tree.count_projects()) == (ScanCoverage.FULL, 1)


def test_a_saved_tree_is_used(tree: FolderTree) -> None:
    assert tree.top is not None
    later = FolderTree()
    planted = later.restore(tree.top.to_snapshot(b"rules"), tree.top.place)
    assert _paths(planted) == _paths(later.folders()) == [TOP, ONE, TWO]
    assert later.has_project(TWO)
    assert later.top is planted[0]
    assert later.count_projects() == 1


def test_projects_are_counted_after_each_change_of_their_folders(tree: FolderTree) -> None:
    two = tree.get(TWO)
    assert two is not None
    tree.set_project(two, ProjectKind.HG)
    assert tree.count_projects() == 1
    again = tree.add(WalkFolder(TWO, 2), None)
    assert tree.count_projects() == 0
    tree.set_project(two, ProjectKind.GIT)
    assert (tree.count_projects(), tree.has_project(TWO)) == (0, False)
    tree.set_project(again, ProjectKind.GIT)
    assert tree.count_projects() == 1
    one = tree.get(ONE)
    assert one is not None
    tree.remove(one)
    assert tree.count_projects() == 0
