"""The registry of open MCP sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from rootsd.core.model import PublishedSet
from rootsd.core.scope import FULL_SCOPE, Scope, UriFilter, describe_scope
from rootsd.mcp.sessions.registry import SessionRegistry
from support.mcp_harness import root
from support.session_history import NullRecorder

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SET = PublishedSet(7, (root("/src/api"), root("/src/web", tags=("work",))))


def empty_registry() -> SessionRegistry:
    return SessionRegistry(NullRecorder(), lambda: NOON)


def test_sessions_are_listed_oldest_first_while_they_are_open() -> None:
    sessions = empty_registry()
    with sessions.opened(10) as first, sessions.opened(11) as second:
        second.named("an editor")
        assert first.id != second.id
        listed = [(item["client"], item["pid"], item["since"]) for item in sessions.items()]
        since = "2026-11-21T12:00:00Z"
        assert listed == [(None, 10, since), ("an editor", 11, since)]
    assert sessions.items() == []


def test_a_session_that_ends_in_an_error_is_removed() -> None:
    sessions = empty_registry()
    with pytest.raises(BrokenPipeError), sessions.opened(10):
        raise BrokenPipeError
    assert sessions.items() == []


def test_a_session_is_shown_with_its_scope_and_its_number_of_roots() -> None:
    sessions = empty_registry()
    with sessions.opened(10) as session:
        assert sessions.items()[0]["given"] == []
        session.scoped(Scope(tags=frozenset({"work"})))
        session.roots_sent(SET)
        [item] = sessions.items()
    assert (item["scope"], item["until"]) == (["tag:work"], None)
    assert item["given"] == [
        {
            "at": "2026-11-21T12:00:00Z",
            "revision": 7,
            "roots": 1,
            "gained": [],
            "gained_count": 0,
            "lost": [],
            "lost_count": 0,
        }
    ]


def test_the_newest_roots_that_a_run_proxy_reported_are_shown() -> None:
    sessions = empty_registry()
    with sessions.opened(10) as session:
        assert sessions.items()[0]["told"] is None
        session.roots_reported(2, ("api", "web"))
        session.roots_reported(1, ("web",))
        assert sessions.items()[0]["told"] == {"roots": 1, "names": ["web"]}


def test_a_scope_that_is_the_same_as_before_is_not_recorded_again() -> None:
    recorder = Mock()
    with SessionRegistry(recorder, lambda: NOON).opened(10) as session:
        for tag in ("go", "go", "work"):
            session.scoped(Scope(tags=frozenset({tag})))
        assert recorder.changed.call_count == 1 + 2  # once for its beginning


def test_a_scope_is_described_by_the_arguments_that_request_it() -> None:
    assert describe_scope(FULL_SCOPE) == []
    asked = Scope(frozenset({"b", "a"}), frozenset({"t"}), b"/src/\xff", UriFilter.ANY)
    assert describe_scope(asked) == ["a", "b", "tag:t", "cwd:/src/\udcff", "any-uri"]
