"""Revisions that never go back, whatever the clock and the disk do."""

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
def test_each_daemon_counts_on_from_above_whatever_the_clock_says(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[datetime, int]]
) -> None:
    state = tmp_path_factory.mktemp("state")
    highest = 0
    for clock, changes in lives:
        first = first_revision(state, clock)
        assert first > highest
        highest = first + changes


def test_with_the_clock_alone_it_would_go_back(tmp_path: Path) -> None:
    first = first_revision(tmp_path, NOW)
    (tmp_path / REVISIONS_NAME).unlink()
    assert first_revision(tmp_path, NOW - timedelta(hours=1)) < first


@pytest.mark.parametrize("damage", [b"", b"\0" * 32, b"x", b"9" * 31, b"-7\n", b"\xff\xfe"])
def test_a_damaged_file_leaves_the_clock(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / REVISIONS_NAME
    first = first_revision(tmp_path, NOW)
    file.write_bytes(damage)
    second = first_revision(tmp_path, NOW + timedelta(milliseconds=1))
    assert second == first + 1
    assert first_revision(tmp_path, NOW) > second + RESERVED_REVISIONS


def test_a_disk_that_refuses_leaves_the_clock_and_a_word_in_the_log(
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
