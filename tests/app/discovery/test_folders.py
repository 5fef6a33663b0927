"""The nodes of a tree."""

from __future__ import annotations

import pytest

from rootsd.app.discovery.folders import Folder, Role
from rootsd.core.model import ProjectKind
from rootsd.host.disk.walk import Place, Zone


def test_all_yields_a_folder_and_everything_below_it() -> None:
    top = Folder(Place(b"/src", 4), None)
    one = top.kids[b"one"] = Folder(Place(b"/src/one", 3, Zone.REPOSITORIES), top)
    two = one.kids[b"two"] = Folder(Place(b"/src/one/two", 2), one)
    assert set(top.all()) == {top, one, two}
    assert set(one.all()) == {one, two}
    assert one.zone is Zone.REPOSITORIES


@pytest.fixture
def tree() -> Folder:
    top = Folder(Place(b"/", 4, top=True), None)
    one = top.kids[b"one"] = Folder(Place(b"/one", 3), top)
    two = one.kids[b"two"] = Folder(Place(b"/one/two", 2, Zone.REPOSITORIES), one)
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
