"""The contents of several databases with one history are combined. No readable file is dropped."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.history import CHAIN_START, events_for
from rootsd.state.store import recovery
from rootsd.state.store.database import Database, StoreUnusable, connect_frozen
from rootsd.state.store.recovery import SalvageSources
from support.sample_decisions import NOON, approved, decide, project
from support.stores import database_of

EVENTS = events_for([decide(approved(number)) for number in range(6)], NOON, CHAIN_START)


def test_the_longest_chain_is_combined_and_missing_files_are_skipped(tmp_path: Path) -> None:
    files = [
        database_of(tmp_path / "first", EVENTS[:2]),
        tmp_path / "none",
        database_of(tmp_path / "second", EVENTS[:5]),
    ]
    with closing(SalvageSources(files)) as sources:
        assert list(sources.events()) == EVENTS[:5]
        sources.require_all_read()


def test_sightings_come_from_the_first_file_that_has_any(tmp_path: Path) -> None:
    files = [database_of(tmp_path / str(count), EVENTS, sightings=count) for count in (0, 2, 5)]
    with closing(SalvageSources(files)) as sources:
        paths = [path for path, _, _ in sources.observed_states()]
        assert paths == [project(0).path, project(1).path]


def test_a_file_without_read_permission_is_named_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = database_of(tmp_path / "refused", EVENTS)

    def fail(file: Path) -> Database:
        if file == refused:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return connect_frozen(file)

    monkeypatch.setattr(recovery, "connect_frozen", fail)
    with closing(
        SalvageSources([refused, database_of(tmp_path / "other", EVENTS[:3])])
    ) as sources:
        assert list(sources.events()) == EVENTS[:3]
        with pytest.raises(StoreUnusable, match=r"refused.*disk I/O error") as caught:
            sources.require_all_read()
    assert f"mv {refused}" in caught.value.remedy
