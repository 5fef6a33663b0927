from __future__ import annotations

from rootsd.core.model import Parent


def test_a_parent_has_depth_four_and_no_nested_projects_by_default() -> None:
    parent = Parent(b"/w")
    assert (parent.depth, parent.skip, parent.nested.value) == (4, (), "none")
