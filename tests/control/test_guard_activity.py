"""What was refused stays to be told until somebody looks, whichever daemon runs by then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.control.guard import REFUSED_FILE, AgentActivity, CommandSummary

WRONG = b'{"count":"1","at":"","what":"","by":"","why":""}'
AT = "2026-03-04T12:00:00Z"


def add(refusals: CommandSummary, what: str) -> None:
    refusals.add(at=AT, what=what, by="pid 9, claude", why="Claude Code started it")


def test_they_are_counted_and_the_newest_is_told_over_restarts(tmp_path: Path) -> None:
    for number in range(1, 4):
        refusals = CommandSummary(tmp_path)
        add(refusals, f"approve {number}")
        assert refusals.seen_by_nobody == {
            "count": number,
            "at": AT,
            "what": f"approve {number}",
            "by": "pid 9, claude",
            "why": "Claude Code started it",
        }
        assert CommandSummary(tmp_path).seen_by_nobody == refusals.seen_by_nobody
    assert os.stat(tmp_path / REFUSED_FILE).st_mode & 0o777 == 0o600


def test_what_agents_did_is_kept_apart_from_what_was_refused_to_them(tmp_path: Path) -> None:
    add(AgentActivity.kept_in(tmp_path).agent_commands, "down")
    again = AgentActivity.kept_in(tmp_path)
    assert again.refusals.seen_by_nobody is None
    assert again.agent_commands.seen_by_nobody is not None
    assert again.agent_commands.seen_by_nobody["what"] == "down"


def test_what_somebody_looked_at_is_not_told_by_the_next_daemon_either(tmp_path: Path) -> None:
    refusals = CommandSummary(tmp_path)
    refusals.looked()
    assert not (tmp_path / REFUSED_FILE).exists(), "nothing was to be forgotten"
    add(refusals, "a long one, of which nothing may stay behind")
    refusals.looked()
    assert refusals.seen_by_nobody is None
    assert CommandSummary(tmp_path).seen_by_nobody is None
    add(refusals, "x")
    kept = CommandSummary(tmp_path).seen_by_nobody
    assert kept is not None
    assert kept["count"] == 1


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff", b'{"count":1}', WRONG, b"[" * 50_000],
)
def test_a_file_that_is_damaged_tells_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / REFUSED_FILE).write_bytes(text)
    refusals = CommandSummary(tmp_path)
    assert refusals.seen_by_nobody is None
    add(refusals, "x")
    assert CommandSummary(tmp_path).seen_by_nobody == refusals.seen_by_nobody


def test_what_somebody_wrote_into_the_file_is_made_safe(tmp_path: Path) -> None:
    add(CommandSummary(tmp_path), "x")
    file = tmp_path / REFUSED_FILE
    file.write_bytes(file.read_bytes().replace(b'"x"', b'"x\\u001b[2Jy"'))
    kept = CommandSummary(tmp_path).seen_by_nobody
    assert kept is not None
    assert "\x1b" not in kept["what"]


def test_where_the_disk_refuses_it_is_told_from_memory_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / REFUSED_FILE).mkdir()
    refusals = CommandSummary(tmp_path)
    add(refusals, "x")
    assert refusals.seen_by_nobody is not None
    assert "is not written down" in caplog.text
