from __future__ import annotations

from rootsd.core.model import Parent


def test_a_parent_looks_four_levels_deep_and_at_nothing_nested_unless_told() -> None:
    parent = Parent(b"/w")
    assert (parent.depth, parent.skip, parent.nested.value) == (4, (), "none")
