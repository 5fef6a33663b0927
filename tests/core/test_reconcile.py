from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.inputs import Unreachable
from rootsd.core.parents import Coverage
from rootsd.core.reconcile import reconcile
from support.world import seen

PATHS = (b"/src", b"/src/a", b"/src/b", b"/src/b/c", b"/src-old", b"/src-old/a", b"/srv")
some = st.sets(st.sampled_from(PATHS))


@pytest.mark.parametrize("coverage", [Coverage.FULL, Coverage.PARTIAL])
def test_what_was_expected_and_not_seen_is_a_doubt_and_no_fact(coverage: Coverage) -> None:
    result = reconcile(b"/src", [seen(b"/src/a")], coverage, [b"/src/b", b"/src/a", b"/src-old/a"])
    assert result.observations == (seen(b"/src/a"),)
    assert result.doubts == (b"/src/b",)


def test_a_parent_that_cannot_be_read_makes_unreachable_what_lies_below_and_nothing_else() -> None:
    result = reconcile(b"/src", [], Coverage.NONE, [b"/src/b", b"/src/a", b"/src-old/a"])
    assert result.observations == (Unreachable(b"/src/a"), Unreachable(b"/src/b"))
    assert result.doubts == ()


@given(some, some, st.sampled_from(Coverage))
def test_each_known_project_of_the_parent_is_spoken_of_exactly_once(
    found: set[bytes], known: set[bytes], coverage: Coverage
) -> None:
    result = reconcile(b"/src", (seen(path) for path in found), coverage, known)
    spoken_of = [event.path for event in result.observations] + list(result.doubts)
    below = {path for path in known if (path + b"/").startswith(b"/src/")}
    assert sorted(spoken_of) == sorted(found | below)
