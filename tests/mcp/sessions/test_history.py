"""The history of sessions, from recorded events to items."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rootsd.core.access import Access
from rootsd.core.model import (
    PublishedRoot,
    PublishedSet,
)
from rootsd.core.scope import FULL_SCOPE, Scope, apply_scope
from rootsd.mcp.sessions.history import read_history
from rootsd.state.store.session_history import SessionHistoryStore, StoredSession
from rootsd.wire.daemon import SentRootsItem
from support.mcp_harness import root
from support.session_history import RecordedSessions

API, WEB = root("/src/api"), root("/src/web", tags=("work",))
READ_ONLY = replace(API, access=Access.READ)


def changes(sent: list[SentRootsItem]) -> list[tuple[int, list[str], list[str]]]:
    return [(each["roots"], each["gained"], each["lost"]) for each in sent]


def test_the_history_shows_a_session_from_beginning_to_end(tmp_path: Path) -> None:
    recorded = RecordedSessions(tmp_path)
    with recorded.sessions.opened(10) as session:
        session.named("an editor")
        session.roots_sent(PublishedSet(1, (API,)))
        session.roots_sent(PublishedSet(2, (API, WEB)))
        session.roots_sent(PublishedSet(4, (READ_ONLY,)))
        session.end = "left"
    [item] = recorded.history()
    assert (item["client"], item["pid"], item["scope"], item["end"]) == (
        "an editor", 10, [], "left",
    )  # fmt: skip
    assert item["since"] < item["given"][0]["at"] < item["given"][2]["at"]
    assert changes(item["given"]) == [
        (1, ["api"], []),
        (2, ["web"], []),
        (1, ["api"], ["web"]),
    ]


def test_the_roots_that_a_run_proxy_reported_are_shown_after_its_end(tmp_path: Path) -> None:
    recorded = RecordedSessions(tmp_path)
    with recorded.sessions.opened(10) as session:
        session.roots_sent(PublishedSet(1, (API, WEB)))
        session.roots_reported(2, ("api", "web"))
        session.roots_reported(1, ("api",))
    [item] = recorded.history()
    assert item["told"] == {"roots": 1, "names": ["api"]}


def test_sessions_of_a_killed_daemon_are_over_for_the_next_one(
    tmp_path: Path,
) -> None:
    recorded = RecordedSessions(tmp_path)
    killed = recorded.sessions.opened(10)
    killed.__enter__().roots_sent(PublishedSet(9, (API,)))
    recorded.log.write_now()
    recorded.start_daemon()
    with recorded.sessions.opened(11) as session:
        session.roots_sent(PublishedSet(1, (WEB,)))
        old, new = recorded.history()
    assert (old["end"], new["end"]) == ("the daemon ended", None)
    assert changes(new["given"]) == [(1, ["web"], [])]


def test_the_history_is_limited_to_the_newest_sessions(tmp_path: Path) -> None:
    recorded = RecordedSessions(tmp_path)
    for pid in range(5):
        with recorded.sessions.opened(pid) as session:
            session.roots_sent(PublishedSet(1, (API,)))
    assert [item["pid"] for item in recorded.history(2)] == [3, 4]


def test_all_names_are_counted_and_a_hundred_are_shown(tmp_path: Path) -> None:
    recorded = RecordedSessions(tmp_path)
    with recorded.sessions.opened(1) as session:
        session.roots_sent(
            PublishedSet(1, tuple(root(f"/src/p{number:03}") for number in range(250)))
        )
    [only] = recorded.history()[0]["given"]
    assert (len(only["gained"]), only["gained_count"], only["roots"]) == (100, 250, 250)


def test_a_damaged_item_is_skipped(tmp_path: Path) -> None:
    store = SessionHistoryStore(tmp_path / "sessions.db")
    store.save({"a": StoredSession("{"), "b": StoredSession("[]")})
    store.save({"c": StoredSession('{"id": "c"}', ["{"]), "d": StoredSession('{"id": "d"}')})
    assert [item["id"] for item in read_history(store, 10)] == ["d"]


Roots = tuple[PublishedRoot, ...]
ROOTS = st.sampled_from([API, READ_ONLY, WEB, root("/src/c"), root("/src/d", tags=("work",))])
SETS = st.lists(ROOTS, max_size=4, unique_by=lambda each: each.name).map(tuple)
SCOPES = st.sampled_from([FULL_SCOPE, Scope(tags=frozenset({"work"}))])
STEPS = st.lists(st.tuples(SETS, SCOPES, st.booleans(), st.booleans()), max_size=8)


@settings(max_examples=50)
@given(STEPS)
def test_each_session_shows_its_net_changes_whatever_it_skipped_and_whatever_its_scope(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Roots, Scope, bool, bool]]
) -> None:
    """A focus changes the scope of a running session."""
    recorded = RecordedSessions(tmp_path_factory.mktemp("h"))
    expected: list[list[tuple[int, list[str], list[str]]]] = [[], []]
    seen: list[dict[str, PublishedRoot]] = [{}, {}]
    with recorded.sessions.opened(0) as one, recorded.sessions.opened(1) as other:
        for revision, (roots, scope, *reads) in enumerate(steps, start=1):
            published = PublishedSet(revision, roots)
            one.scoped(scope)
            for number, session in enumerate((one, other)):
                if not reads[number]:
                    continue
                session.roots_sent(published)
                before = seen[number]
                now = {r.name: r for r in apply_scope(published, session.scope).roots}
                gained = sorted(name for name in now if now[name] != before.get(name))
                lost = sorted(before.keys() - now)
                if gained or lost or not expected[number]:
                    expected[number].append((len(now), gained, lost))
                seen[number] = now
    assert [changes(item["given"]) for item in recorded.history()] == expected
