"""Lines in two generations."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.state.store.rotating_log import RotatingLog
from rootsd.system.private_files import NotPrivate


def test_lines_come_back_in_order_also_for_who_opens_it_anew(tmp_path: Path) -> None:
    journal = RotatingLog(tmp_path / "log", 1000)
    assert list(journal.read()) == []
    journal.append(b"one\ntwo\n")
    journal.append(b"three\n")
    journal.close()
    again = RotatingLog(tmp_path / "log", 1000)
    again.append(b"four\n")
    assert list(again.read()) == [b"one", b"two", b"three", b"four"]
    again.close()


def test_only_two_generations_are_kept(tmp_path: Path) -> None:
    journal = RotatingLog(tmp_path / "log", 4)
    journal.turn()  # nothing there to turn
    for line in (b"first\n", b"second\n", b"third\n"):
        assert not journal.is_full
        journal.append(line)
        assert journal.is_full
        journal.turn()
    journal.append(b"4\n")
    assert list(journal.read()) == [b"third", b"4"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    journal.close()


def test_what_was_there_counts_towards_the_limit(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 50 + b"\n")
    journal = RotatingLog(tmp_path / "log", 52)
    journal.append(b"y\n")
    assert journal.is_full
    journal.close()


def test_a_line_that_was_cut_short_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"whole\nha")
    journal = RotatingLog(tmp_path / "log", 1000)
    journal.append(b"next\n")
    assert list(journal.read()) == [b"whole", b"ha", b"next"]
    journal.close()


def test_it_is_the_users_alone_and_no_link(tmp_path: Path) -> None:
    journal = RotatingLog(tmp_path / "log", 1000)
    journal.append(b"one\n")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    journal.close()
    os.symlink("/etc/passwd", tmp_path / "link")
    with pytest.raises(NotPrivate):
        RotatingLog(tmp_path / "link", 1000).append(b"one\n")


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    journal = RotatingLog(tmp_path / "log", 1000)
    with pytest.raises(NotPrivate, match="log"):
        journal.append(b"one\n")
    with pytest.raises(NotPrivate, match="log"):
        list(journal.read())
