"""A foreign database is read from memory and cannot start long computations."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.vcs.sqlite_reader import has_hot_journal, query_copy
from support.repositories import raw

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a.db"
    with closing(sqlite3.connect(made)) as database:
        database.execute("CREATE TABLE Real (name TEXT)")
        database.execute("INSERT INTO Real VALUES ('one')")
        database.execute(f"CREATE VIEW trap AS {ENDLESS}")
        database.commit()
    return made


def test_rows_are_read_and_nothing_is_left_beside_the_file(file: Path) -> None:
    assert query_copy(raw(file), ("real",), "SELECT name FROM real") == [("one",)]
    assert list(file.parent.iterdir()) == [file]


def test_a_view_does_not_count_as_a_table(file: Path) -> None:
    assert query_copy(raw(file), ("trap",), "SELECT x FROM trap") is None


def test_a_long_computation_is_stopped(file: Path) -> None:
    assert query_copy(raw(file), ("real",), ENDLESS) is None


def test_a_file_that_is_not_a_database_gives_no_answer(file: Path) -> None:
    whole = file.read_bytes()
    for content in (b"", b"text", whole[:1_000], whole[:4_096] + bytes(4_096)):
        file.write_bytes(content)
        assert query_copy(raw(file), ("real",), "SELECT name FROM real") is None
    file.unlink()
    assert query_copy(raw(file), ("real",), "SELECT name FROM real") is None


def test_a_journal_that_is_not_empty_is_hot(file: Path) -> None:
    assert not has_hot_journal(raw(file))
    journal = file.with_name("a.db-journal")
    journal.touch()
    assert not has_hot_journal(raw(file))
    journal.write_bytes(b"x")
    assert has_hot_journal(raw(file))
