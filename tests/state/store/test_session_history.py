"""The SQLite file of sessions: bounded, private, and replaced if it is damaged."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.errors import RootsdError
from rootsd.state.store.session_history import SessionHistoryStore, StoredSession


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def items(store: SessionHistoryStore, last: int = 100) -> list[str]:
    return [stored.item for stored in store.load(last)]


def test_saved_sessions_are_loaded_in_the_order_in_which_they_began(file: Path) -> None:
    store = SessionHistoryStore(file)
    store.save({"b": StoredSession("1", ["x"]), "a": StoredSession("2")})
    store.save({"b": StoredSession("3", ["y", "z"], is_open=True)})
    store.close()
    assert SessionHistoryStore(file).load(100) == [
        StoredSession("3", ["x", "y", "z"], is_open=True),
        StoredSession("2", []),
    ]
    assert items(store, last=1) == ["2"]
    assert items(store, last=0) == []


def test_it_tells_whether_there_was_ever_a_session_and_makes_no_file(file: Path) -> None:
    store = SessionHistoryStore(file)
    assert not store.has_any()
    assert not file.exists()
    store.save({})
    assert not store.has_any()
    store.save({"a": StoredSession("1")})
    assert SessionHistoryStore(file).has_any()


def test_open_sessions_are_found_again(file: Path) -> None:
    SessionHistoryStore(file).save(
        {"a": StoredSession("1", is_open=True), "b": StoredSession("2")}
    )
    assert [stored.item for stored in SessionHistoryStore(file).load_open()] == ["1"]


def test_the_oldest_sessions_are_dropped_with_what_they_received(file: Path) -> None:
    store = SessionHistoryStore(file, max_sessions=3)
    store.save({"open": StoredSession("open", ["x"], is_open=True)})
    for number in range(10):
        store.save({str(number): StoredSession(str(number), ["x"])})
    assert items(store) == ["open", "7", "8", "9"], "an open session stays"
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM sent_roots").fetchone() == (4,)


def test_the_oldest_sent_roots_are_dropped(file: Path) -> None:
    store = SessionHistoryStore(file, max_sent=3)
    for number in range(10):
        store.save({"a": StoredSession("a", [str(number)])})
    assert store.load(1) == [StoredSession("a", ["7", "8", "9"])]


def test_the_file_is_private(file: Path) -> None:
    SessionHistoryStore(file).save({"a": StoredSession("a")})
    assert [path.stat().st_mode & 0o777 for path in file.parent.iterdir()] == [0o600, 0o600]


@pytest.mark.parametrize("method", ["save", "load", "load_open"])
def test_a_damaged_file_is_replaced_with_a_warning(
    file: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    file.write_bytes(b"no database at all " * 100)
    store = SessionHistoryStore(file)
    match method:
        case "save":
            store.save({"a": StoredSession("a")})
            assert items(store) == ["a"]
        case "load":
            assert store.load(10) == []
        case _:
            assert store.load_open() == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "a new one begins" in caplog.text
    store.save({"b": StoredSession("b")})
    assert items(store)[-1] == "b"


def test_a_file_of_an_unknown_format_is_replaced(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 99")
    assert SessionHistoryStore(file).load(10) == []
    assert items(SessionHistoryStore(file)) == []


def test_a_file_that_the_system_refuses_is_an_error(file: Path) -> None:
    file.mkdir()
    with pytest.raises(RootsdError, match="cannot be used"):
        SessionHistoryStore(file).save({"a": StoredSession("a")})
