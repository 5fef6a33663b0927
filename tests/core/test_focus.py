"""The focus for new sessions and for running ones."""

from __future__ import annotations

from rootsd.core.model import NO_FOCUS


def test_a_focus_for_new_sessions_leaves_running_ones_alone() -> None:
    early = NO_FOCUS
    late = early.for_new_sessions("work")
    assert (late.tag_for(early), late.tag_for(late)) == (None, "work")
    later = late.for_new_sessions(None)
    assert (later.tag_for(early), later.tag_for(late), later.tag_for(later)) == (
        None,
        "work",
        None,
    )


def test_a_focus_for_all_sessions_outlives_later_changes_for_new_ones() -> None:
    early = NO_FOCUS.for_new_sessions("home")
    swept = early.for_all_sessions("work")
    assert (swept.tag_for(NO_FOCUS), swept.tag_for(early), swept.tag_for(swept)) == ("work",) * 3
    after = swept.for_new_sessions("home")
    assert (after.tag_for(early), after.tag_for(swept), after.tag_for(after)) == (
        "work",
        "work",
        "home",
    )
    assert after.for_all_sessions(None).tag_for(early) is None
