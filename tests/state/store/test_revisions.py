"""Revisions never go back, even with a changed clock or a failing disk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.state.store.revisions import RESERVED_REVISIONS, REVISIONS_NAME, first_revision

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MOMENTS = st.integers(0, 3_000_000_000).map(lambda second: datetime.fromtimestamp(second, UTC))


@given(st.lists(st.tuples(MOMENTS, st.integers(0, RESERVED_REVISIONS)), max_size=8))
def test_each_daemon_continues_above_the_last_revision(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[datetime, int]]
) -> None:
    state = tmp_path_factory.mktemp("state")
    highest = 0
    for clock, changes in lives:
        first = first_revision(state, clock)
        assert first > highest
        highest = first + changes


def test_control_with_the_clock_alone_revisions_go_back(tmp_path: Path) -> None:
    first = first_revision(tmp_path, NOW)
    (tmp_path / REVISIONS_NAME).unlink()
    assert first_revision(tmp_path, NOW - timedelta(hours=1)) < first


@pytest.mark.parametrize("damage", [b"", b"\0" * 32, b"x", b"9" * 31, b"-7\n", b"\xff\xfe"])
def test_with_a_damaged_file_the_clock_is_used(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / REVISIONS_NAME
    first = first_revision(tmp_path, NOW)
    file.write_bytes(damage)
    second = first_revision(tmp_path, NOW + timedelta(milliseconds=1))
    assert second == first + 1
    assert first_revision(tmp_path, NOW) > second + RESERVED_REVISIONS


def test_with_a_refusing_disk_the_clock_is_used_and_a_warning_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / REVISIONS_NAME).mkdir()
    assert first_revision(tmp_path, NOW) == NOW.timestamp() * 1000
    assert "revisions" in caplog.text


def test_the_file_is_private_and_keeps_its_length(tmp_path: Path) -> None:
    sizes = set()
    for _ in range(3):
        first_revision(tmp_path, NOW)
        found = (tmp_path / REVISIONS_NAME).stat()
        sizes.add(found.st_size)
        assert found.st_mode & 0o777 == 0o600
    assert sizes == {32}


def test_a_clock_before_1970_counts_from_one(tmp_path: Path) -> None:
    assert first_revision(tmp_path, datetime(1969, 1, 1, tzinfo=UTC)) == 1
