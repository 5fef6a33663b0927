"""Refused commands are reported until a person sees them, even after a restart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.control.attempts import AttemptSummary

WRONG = b'{"count":"1","at":"","what":"","by":"","why":""}'
REFUSED_FILE = "refused.json"
AT = "2026-03-04T12:00:00Z"


def add(refusals: AttemptSummary, what: str) -> None:
    refusals.add(at=AT, what=what, by="pid 9, claude", why="Claude Code started it")


def test_refusals_are_counted_and_the_newest_survives_restarts(tmp_path: Path) -> None:
    for number in range(1, 4):
        refusals = AttemptSummary(tmp_path / REFUSED_FILE)
        add(refusals, f"approve {number}")
        assert refusals.unseen == {
            "count": number,
            "at": AT,
            "what": f"approve {number}",
            "by": "pid 9, claude",
            "why": "Claude Code started it",
        }
        assert AttemptSummary(tmp_path / REFUSED_FILE).unseen == refusals.unseen
    assert os.stat(tmp_path / REFUSED_FILE).st_mode & 0o777 == 0o600


def test_seen_refusals_are_not_reported_by_the_next_daemon(tmp_path: Path) -> None:
    refusals = AttemptSummary(tmp_path / REFUSED_FILE)
    refusals.mark_seen()
    assert not (tmp_path / REFUSED_FILE).exists(), "nothing was to be forgotten"
    add(refusals, "a long one, of which nothing may stay behind")
    refusals.mark_seen()
    assert refusals.unseen is None
    assert AttemptSummary(tmp_path / REFUSED_FILE).unseen is None
    add(refusals, "x")
    kept = AttemptSummary(tmp_path / REFUSED_FILE).unseen
    assert kept is not None
    assert kept["count"] == 1


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff", b'{"count":1}', WRONG, b"[" * 50_000],
)
def test_a_damaged_file_reports_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / REFUSED_FILE).write_bytes(text)
    refusals = AttemptSummary(tmp_path / REFUSED_FILE)
    assert refusals.unseen is None
    add(refusals, "x")
    assert AttemptSummary(tmp_path / REFUSED_FILE).unseen == refusals.unseen


def test_hostile_text_in_the_file_is_escaped(tmp_path: Path) -> None:
    add(AttemptSummary(tmp_path / REFUSED_FILE), "x")
    file = tmp_path / REFUSED_FILE
    file.write_bytes(file.read_bytes().replace(b'"x"', b'"x\\u001b[2Jy"'))
    kept = AttemptSummary(tmp_path / REFUSED_FILE).unseen
    assert kept is not None
    assert "\x1b" not in kept["what"]


def test_on_a_refusing_disk_refusals_are_kept_in_memory_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / REFUSED_FILE).mkdir()
    refusals = AttemptSummary(tmp_path / REFUSED_FILE)
    add(refusals, "x")
    assert refusals.unseen is not None
    assert "was not saved" in caplog.text
