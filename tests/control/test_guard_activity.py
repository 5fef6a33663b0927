"""Refused commands are reported until a person sees them, even after a restart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.control.guard import REFUSED_FILE, AgentActivity, CommandSummary

WRONG = b'{"count":"1","at":"","what":"","by":"","why":""}'
AT = "2026-03-04T12:00:00Z"


def add(refusals: CommandSummary, what: str) -> None:
    refusals.add(at=AT, what=what, by="pid 9, claude", why="Claude Code started it")


def test_refusals_are_counted_and_the_newest_survives_restarts(tmp_path: Path) -> None:
    for number in range(1, 4):
        refusals = CommandSummary(tmp_path)
        add(refusals, f"approve {number}")
        assert refusals.unseen == {
            "count": number,
            "at": AT,
            "what": f"approve {number}",
            "by": "pid 9, claude",
            "why": "Claude Code started it",
        }
        assert CommandSummary(tmp_path).unseen == refusals.unseen
    assert os.stat(tmp_path / REFUSED_FILE).st_mode & 0o777 == 0o600


def test_actions_and_refusals_of_agents_are_counted_separately(tmp_path: Path) -> None:
    add(AgentActivity.in_folder(tmp_path).agent_commands, "down")
    again = AgentActivity.in_folder(tmp_path)
    assert again.refusals.unseen is None
    assert again.agent_commands.unseen is not None
    assert again.agent_commands.unseen["what"] == "down"


def test_seen_refusals_are_not_reported_by_the_next_daemon(tmp_path: Path) -> None:
    refusals = CommandSummary(tmp_path)
    refusals.mark_seen()
    assert not (tmp_path / REFUSED_FILE).exists(), "nothing was to be forgotten"
    add(refusals, "a long one, of which nothing may stay behind")
    refusals.mark_seen()
    assert refusals.unseen is None
    assert CommandSummary(tmp_path).unseen is None
    add(refusals, "x")
    kept = CommandSummary(tmp_path).unseen
    assert kept is not None
    assert kept["count"] == 1


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff", b'{"count":1}', WRONG, b"[" * 50_000],
)
def test_a_damaged_file_reports_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / REFUSED_FILE).write_bytes(text)
    refusals = CommandSummary(tmp_path)
    assert refusals.unseen is None
    add(refusals, "x")
    assert CommandSummary(tmp_path).unseen == refusals.unseen


def test_hostile_text_in_the_file_is_escaped(tmp_path: Path) -> None:
    add(CommandSummary(tmp_path), "x")
    file = tmp_path / REFUSED_FILE
    file.write_bytes(file.read_bytes().replace(b'"x"', b'"x\\u001b[2Jy"'))
    kept = CommandSummary(tmp_path).unseen
    assert kept is not None
    assert "\x1b" not in kept["what"]


def test_on_a_refusing_disk_refusals_are_kept_in_memory_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / REFUSED_FILE).mkdir()
    refusals = CommandSummary(tmp_path)
    add(refusals, "x")
    assert refusals.unseen is not None
    assert "was not saved" in caplog.text
