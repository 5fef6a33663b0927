"""SessionLog records events in order, in a bounded queue, and survives a full or broken disk."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest

from rootsd.core.model import PublishedSet
from rootsd.mcp.sessions import history
from rootsd.mcp.sessions.history import read_history
from support.ledger_harness import HANG_GUARD
from support.mcp_harness import root
from support.session_history import RecordedSessions

API, WEB = root("/src/api"), root("/src/web")


def test_a_set_is_recorded_once_for_a_session_that_receives_it_twice(tmp_path: Path) -> None:
    recorded = RecordedSessions(tmp_path)
    published = PublishedSet(1, (API,))
    with recorded.sessions.opened(10) as one, recorded.sessions.opened(11) as other:
        for session in (one, other, one, other):
            session.roots_sent(published)
    assert [len(item["given"]) for item in recorded.history()] == [1, 1]


def test_a_disk_that_refuses_is_logged_once_and_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    recorded = RecordedSessions(tmp_path)
    recorded.file.mkdir()
    with recorded.sessions.opened(10) as session:
        for revision in (1, 2):
            session.roots_sent(PublishedSet(revision, (API,)))
            recorded.log.write_now()
        assert len(caplog.records) == 1
        recorded.file.rmdir()
        session.roots_sent(PublishedSet(3, (API, WEB)))
        [item] = recorded.history()
    assert [each["gained"] for each in item["given"]] == [["api", "web"]], "a complete record"


def test_the_queue_of_unwritten_events_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MAX_UNWRITTEN_EVENTS", 3)
    recorded = RecordedSessions(tmp_path)
    with recorded.sessions.opened(10) as session:
        for revision in range(1, 10):
            session.roots_sent(PublishedSet(revision, (API, WEB)[revision % 2 :]))
        [item] = recorded.history()
    assert [each["revision"] for each in item["given"]] == [1, 2]


async def test_events_are_written_while_the_daemon_runs(tmp_path: Path) -> None:
    recorded = RecordedSessions(tmp_path)
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(recorded.log.run)
            with recorded.sessions.opened(10):
                pass
            while not any(item["end"] for item in read_history(recorded.store, 1)):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    recorded.log.write_now()
