"""What is written down of sessions: in order, once, bounded, and never in their way."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from rootsd.core.model import PublishedSet
from rootsd.core.scope import Scope
from rootsd.mcp.sessions import history as session_log
from support.accounts import Accounts
from support.fakes import HANG_GUARD
from support.publishing import root

API, WEB = root("/src/api"), root("/src/web")


def lines(accounts: Accounts) -> list[dict[str, Any]]:
    accounts.log.write_now()
    return [json.loads(line) for line in accounts.file.read_text().splitlines()]


def kinds(written: list[dict[str, Any]]) -> list[str]:
    words = ("daemon", "set", "opened", "given", "closed")
    return [next(word for word in words if word in line) for line in written]


def test_a_set_is_written_once_however_many_sessions_are_given_it(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    first, second = PublishedSet(1, (API,)), PublishedSet(2, (WEB,))
    with accounts.sessions.opened(10) as one, accounts.sessions.opened(11) as other:
        for published in (first, second):
            for session in (one, other):
                session.given(published)
                session.given(published)
    written = lines(accounts)
    assert kinds(written) == [
        "daemon", "opened", "opened",
        "set", "given", "given",
        "set", "given", "given",
        "closed", "closed",
    ]  # fmt: skip
    whole, step = written[3], written[6]
    assert (whole["whole"], [each["name"] for each in whole["gained"]]) == (True, ["api"])
    assert (step["whole"], [each["name"] for each in step["gained"]]) == (False, ["web"])
    assert step["lost"] == ["api"]


def test_a_new_generation_can_be_read_alone(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path, limit=600)
    with accounts.sessions.opened(10) as session:
        session.scoped(Scope(names=frozenset({"api"})))
        session.given(PublishedSet(1, (API, WEB)))
        accounts.log.write_now()
        session.given(PublishedSet(2, (WEB,)))
        written = lines(accounts)
    assert accounts.file.with_name("sessions.ndjson.1").exists()
    assert kinds(written) == ["set", "opened", "given", "set", "given"]
    assert written[0]["whole"] is True
    assert written[1]["opened"]["scope"]["names"] == ["api"]


def test_a_disk_that_refuses_is_told_of_once_and_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    accounts = Accounts(tmp_path)
    accounts.file.mkdir()
    with accounts.sessions.opened(10) as session:
        for revision in (1, 2):
            session.given(PublishedSet(revision, (API,)))
            accounts.log.write_now()
        assert len(caplog.records) == 1
        accounts.file.rmdir()
        session.given(PublishedSet(3, (API, WEB)))
        written = lines(accounts)
    assert kinds(written) == ["set", "given"]
    assert written[0]["whole"] is True, "what was refused before is not relied on"


def test_no_more_is_held_for_the_disk_than_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_log, "_MOST_UNWRITTEN", 3)
    accounts = Accounts(tmp_path)
    with accounts.sessions.opened(10) as session:
        for revision in range(1, 10):
            session.given(PublishedSet(revision, (API,)))
    assert kinds(lines(accounts)) == ["daemon", "opened", "set", "given"]


async def test_it_is_written_while_the_daemon_runs(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    with anyio.fail_after(HANG_GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(accounts.log.keep)
            with accounts.sessions.opened(10):
                pass
            while "closed" not in (accounts.file.read_text() if accounts.file.exists() else ""):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    accounts.log.write_now()
