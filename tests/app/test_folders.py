"""The nodes of a tree."""

from __future__ import annotations

from rootsd.app.folders import Folder
from rootsd.host.walk import Place, Zone


def test_all_yields_a_folder_and_everything_below_it() -> None:
    top = Folder(Place(b"/src", 4), None)
    one = top.kids[b"one"] = Folder(Place(b"/src/one", 3, Zone.REPOSITORIES), top)
    two = one.kids[b"two"] = Folder(Place(b"/src/one/two", 2), one)
    assert set(top.all()) == {top, one, two}
    assert set(one.all()) == {one, two}
    assert one.zone is Zone.REPOSITORIES
