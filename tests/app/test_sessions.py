"""Which MCP connections there are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rootsd.app.sessions import Sessions

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_sessions_are_listed_oldest_first_while_they_are_open() -> None:
    sessions = Sessions(lambda: NOON)
    with sessions.opened(10), sessions.opened(11) as second:
        second.named("an editor")
        assert sessions.status() == [
            {"client": None, "pid": 10, "since": "2026-11-21T12:00:00Z"},
            {"client": "an editor", "pid": 11, "since": "2026-11-21T12:00:00Z"},
        ]
    assert sessions.status() == []


def test_a_session_that_ends_in_an_error_is_gone_too() -> None:
    sessions = Sessions(lambda: NOON)
    with pytest.raises(BrokenPipeError), sessions.opened(10):
        raise BrokenPipeError
    assert sessions.status() == []
