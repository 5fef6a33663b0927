"""The view of one connection: scope, focus, and changes."""

from __future__ import annotations

from rootsd.core.model import NO_FOCUS, Focus, PublishedSet
from rootsd.core.scope import FocusUse, Scope, UriFilter
from rootsd.mcp.views import ConnectionView
from support.mcp_harness import FakeSource, root
from support.recorded_session import RecordedObserver

API = root("/src/api", tags=("work",))
WEB = root("/src/web")


async def test_a_scope_applies_from_then_on() -> None:
    source = FakeSource(API, WEB)
    view = ConnectionView(source, RecordedObserver())
    view.narrow(Scope(tags=frozenset({"work"}), uris=UriFilter.ANY))
    assert (await view.current()).roots == (API,)
    assert view.uris is UriFilter.ANY
    source.publish(WEB)
    assert (await view.current()).roots == ()


async def test_sessions_with_equal_scopes_share_their_sets() -> None:
    source = FakeSource(API, WEB)
    seen = []
    for _ in range(2):
        view = ConnectionView(source, RecordedObserver())
        view.narrow(Scope(names=frozenset({"web"})))
        seen.append(await view.current())
    assert seen[0] is seen[1]


def test_changes_outside_the_scope_are_no_changes() -> None:
    view = ConnectionView(FakeSource(), RecordedObserver())
    view.narrow(Scope(names=frozenset({"web"})))
    assert view.diff(PublishedSet(1, (WEB,)), PublishedSet(2, (API, WEB))).resources == frozenset()
    assert view.diff(PublishedSet(2, (API, WEB)), PublishedSet(3, (API,))).revokes


def _narrowed(view: ConnectionView, before: Focus, after: Focus) -> frozenset[str]:
    both = (API, WEB)
    return view.diff(PublishedSet(1, both, before), PublishedSet(2, both, after)).resources


def test_a_new_focus_does_not_change_a_running_session_but_a_sweep_does() -> None:
    view = ConnectionView(FakeSource(), RecordedObserver())
    focus = Focus("work", 1)
    assert _narrowed(view, NO_FOCUS, focus) == frozenset()
    assert "roots://root/web" in _narrowed(view, focus, focus.for_all_sessions("work"))
    revoking = (
        PublishedSet(1, (API, WEB)),
        PublishedSet(2, (API, WEB), focus.for_all_sessions("work")),
    )
    assert view.diff(*revoking).revokes


def test_a_session_with_a_scope_of_its_own_keeps_it() -> None:
    view = ConnectionView(FakeSource(), RecordedObserver())
    view.narrow(Scope(names=frozenset({"web"})))
    assert _narrowed(view, NO_FOCUS, NO_FOCUS.for_all_sessions("work")) == frozenset()


async def test_a_session_that_follows_the_focus_changes_with_it_at_once() -> None:
    source = FakeSource(API, WEB)
    view = ConnectionView(source, RecordedObserver())
    view.narrow(Scope(focus=FocusUse.FOLLOW))
    assert (await view.current()).roots == ()
    focus = NO_FOCUS.for_new_sessions("work")
    assert "roots://root/api" in _narrowed(view, NO_FOCUS, focus)
    assert "roots://root/web" not in _narrowed(view, NO_FOCUS, focus)
    source.refocus(focus)
    assert (await view.current()).roots == (API,)
    source.refocus(focus.for_new_sessions(None))
    assert (await view.current()).roots == ()


async def test_a_session_that_begins_under_a_focus_sees_its_tag_only() -> None:
    source, notes = FakeSource(API, WEB), RecordedObserver()
    source.refocus(Focus("work", 1))
    view = ConnectionView(source, notes)
    view.initial_focus = Focus("work", 1)
    assert (await view.current()).roots == (API,)
    source.refocus(Focus("work", 1).for_all_sessions(None))
    assert (await view.current()).roots == (API, WEB)
    assert notes.scopes == [Scope(tags=frozenset({"work"})), Scope()]
