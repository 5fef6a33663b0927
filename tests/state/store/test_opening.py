"""Opening a store after a person, a crash, or a disk changed its files."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.changes import Change, ChangeVerb, SettingChange
from rootsd.core.errors import Busy
from rootsd.core.guard_setting import Guard
from rootsd.core.history import CHAIN_START, HistoryState
from rootsd.core.model import LapseReason, Verdict
from rootsd.files.private_files import NotPrivate
from rootsd.state.store import database, recovery
from rootsd.state.store.anchors import FirstAnchor, SecondAnchor
from rootsd.state.store.database import StoreDamaged, StoreUnusable
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.schema import NewerStore
from rootsd.state.store.store import Store, StoredState
from support.sample_decisions import NOON, PERSON, approved, decide, denied, project, rule
from support.stores import (
    EVERYTHING,
    OPENED_AT,
    append,
    back_up,
    by_path,
    edit,
    is_approved,
    load,
    lose_event,
    opened,
    outside,
)

# The position in the header (sqlite.org/fileformat2.html, 1.3).
_WRITE_VERSION = 18


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def _assert_distrusted(loaded: StoredState, *, approvals: int = 2) -> None:
    """Nothing of EVERYTHING is approved any more, and what was denied still is."""
    projects = by_path(loaded)
    assert not any(is_approved(one) for one in projects.values())
    for number in (1, 3):
        lapse = projects[approved(number).path].ruling.lapse
        assert lapse is not None
        assert (lapse.reason, lapse.at) == (LapseReason.STORE_RESTORED, OPENED_AT)
    assert projects[denied(2).path] == denied(2)
    assert projects[project(4).path] == project(4)
    assert loaded.rules == (rule(1, Verdict.PENDING), rule(2, Verdict.DENIED))
    assert loaded.next_rule == 3
    assert f"{approvals} approvals and 1 approve rule lapsed" in loaded.note
    assert "rootsd approve --lapsed --all restores them" in loaded.note


@pytest.mark.parametrize("lost", [decide(denied(1), approved(1)), decide(approved(7))])
def test_after_restoring_an_old_copy_approvals_are_pending_and_the_guard_is_reset(
    folder: Path, lost: Change
) -> None:
    append(folder, *EVERYTHING, SettingChange(Guard.OFF, PERSON, ChangeVerb.GUARD_SET))
    old = (folder / DATABASE_NAME).read_bytes()
    append(folder, lost)
    (folder / DATABASE_NAME).write_bytes(old)
    loaded = load(folder)
    _assert_distrusted(loaded)
    assert loaded.guard is None
    assert "The guard is the usual one again" in loaded.note
    again = load(folder)
    assert again.note == ""
    assert not any(map(is_approved, again.projects))
    append(folder, decide(approved(1), by_path(again)[approved(1).path]))
    assert by_path(load(folder))[approved(1).path] == approved(1)


def test_neither_a_history_without_its_anchor_nor_another_history_is_trusted(
    folder: Path, tmp_path: Path
) -> None:
    append(folder, *EVERYTHING)
    (folder / "head").unlink()
    _assert_distrusted(load(folder))
    append(folder, decide(approved(7)))
    append(tmp_path / "other", *(decide(approved(number)) for number in range(40)))
    shutil.copy(tmp_path / "other" / DATABASE_NAME, folder / DATABASE_NAME)
    assert not any(map(is_approved, load(folder).projects))


@pytest.mark.parametrize("anchor", [FirstAnchor, SecondAnchor])
def test_a_decision_committed_just_before_a_crash_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, anchor: type
) -> None:
    """The crash comes before the write of the first anchor, or of the second one."""

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    append(folder, *EVERYTHING)
    with opened(folder) as store, monkeypatch.context() as patch:
        patch.setattr(anchor, "write", crash)
        with pytest.raises(KeyboardInterrupt):
            store.append([decide(approved(7))], NOON)
    for crashes in (SecondAnchor, SecondAnchor, None):  # the next starts are killed, too
        with monkeypatch.context() as patch:
            if crashes is not None:
                patch.setattr(crashes, "write", crash)
                with pytest.raises(KeyboardInterrupt):
                    load(folder)
    loaded = load(folder)
    assert loaded.note == ""
    assert by_path(loaded)[approved(7).path] == approved(7)


def test_damage_that_a_backup_repairs_loses_nothing(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        back_up(store, NOON)
        store.append([decide(approved(7))], NOON)
        before = store.load()
    lose_event(folder, 2)
    loaded = load(folder)
    assert replace(loaded, note="") == before
    assert "was damaged" in loaded.note
    assert "approvals" not in loaded.note
    (kept,) = folder.glob("decisions.db.damaged-*Z")
    assert str(kept) in loaded.note
    assert load(folder) == before


@pytest.mark.parametrize("version", [3, 0x81])
def test_a_header_that_forbids_writing_counts_as_damage(folder: Path, version: int) -> None:
    """One flipped bit gives a file that only a newer SQLite would write. It can still be read."""
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        expected = store.load()
    with (folder / DATABASE_NAME).open("r+b") as file:
        file.seek(_WRITE_VERSION)
        file.write(bytes([version]))
    loaded = load(folder)
    assert "has been rebuilt" in loaded.note
    assert replace(loaded, note="") == expected


def test_after_losing_the_last_events_approvals_are_pending(folder: Path) -> None:
    append(folder, *EVERYTHING)
    append(folder, decide(approved(7)), decide(denied(7), approved(7)))
    lose_event(folder, 7)
    loaded = load(folder)
    assert by_path(loaded)[approved(7).path].ruling.decision is None
    assert "was damaged" in loaded.note
    _assert_distrusted(loaded, approvals=3)


def test_a_deleted_database_is_restored_from_its_backup_without_approvals(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        back_up(store, NOON)
        store.append([decide(denied(1), approved(1))], NOON)
    (folder / DATABASE_NAME).unlink()
    _assert_distrusted(load(folder))


def test_a_deleted_database_without_a_backup_is_reported_with_what_to_do(folder: Path) -> None:
    append(folder, *EVERYTHING)
    (folder / DATABASE_NAME).unlink()
    loaded = load(folder)
    assert (loaded.projects, loaded.rules) == ((), ())
    assert "it is gone" in loaded.note
    assert "Decide again about what it lacks: rootsd pending" in loaded.note
    assert "--lapsed" not in loaded.note
    assert load(folder).note == ""


@pytest.mark.parametrize("crash_before", ["rebuilt.replace", "put aside"])
def test_a_crash_during_a_rebuild_loses_nothing(folder: Path, crash_before: str) -> None:
    append(folder, *EVERYTHING)
    expected = replace(load(folder), note="")
    if crash_before == "put aside":
        (folder / (DATABASE_NAME + ".rebuilt")).write_bytes(b"half of it")
        _lose_nothing_but_the_layout(folder)
    else:
        (folder / DATABASE_NAME).rename(folder / (DATABASE_NAME + ".damaged-1"))
    loaded = load(folder)
    assert "was damaged" in loaded.note
    assert replace(loaded, note="") == expected


def _lose_nothing_but_the_layout(folder: Path) -> None:
    edit(folder, "DROP TRIGGER event_no_update")


def test_a_crash_before_the_first_decision_gives_a_new_store(folder: Path) -> None:
    load(folder)
    (folder / DATABASE_NAME).write_bytes(b"")
    assert load(folder).note == ""


def test_a_newer_store_is_refused_unchanged(folder: Path) -> None:
    append(folder, *EVERYTHING)
    edit(folder, "PRAGMA user_version = 99")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(NewerStore):
        Store.open(folder, outside(folder))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_link_in_the_place_of_the_database_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    (tmp_path / "elsewhere").touch()
    (folder / DATABASE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPrivate):
        Store.open(folder, outside(folder))
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_database_that_another_program_holds_is_busy_and_not_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, *EVERYTHING)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(folder / DATABASE_NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM sighting")
        with pytest.raises(Busy):
            Store.open(folder, outside(folder))
        other.execute("ROLLBACK")
    assert load(folder).note == ""
    assert list(folder.glob("*damaged*")) == []


def test_a_store_that_cannot_be_rebuilt_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, *EVERYTHING)
    lose_event(folder, 2)
    monkeypatch.setattr(recovery, "rebuild", lambda *_: recovery.RebuildResult(CHAIN_START, None))
    with pytest.raises(StoreUnusable, match="damaged again") as caught:
        Store.open(folder, outside(folder))
    assert caught.value.remedy


@pytest.mark.parametrize("fault", [PermissionError(13, "Permission denied"), OSError(5, "I/O")])
def test_an_unreadable_state_folder_does_not_count_as_empty(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError
) -> None:
    append(folder, *EVERYTHING)
    real = Path.lstat

    def fail(path: Path) -> os.stat_result:
        if path.name == DATABASE_NAME:
            raise fault
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", fail)
        with pytest.raises(NotPrivate):
            Store.open(folder, outside(folder))
    assert load(folder).note == ""
    assert list(folder.glob("*damaged*")) == []


def test_without_a_readable_journal_half_a_transaction_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, *EVERYTHING)
    (folder / (DATABASE_NAME + "-journal")).write_bytes(bytes.fromhex("d9d505f920a163d7"))
    # SQLite's access(2) fails, and it continues without the journal.
    monkeypatch.setattr(database, "PRAGMAS", (*database.PRAGMAS[:1], "journal_mode=OFF"))
    with pytest.raises(StoreUnusable, match="journal"):
        Store.open(folder, outside(folder))


def test_damage_that_a_second_read_does_not_show_is_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, *EVERYTHING)
    real, looks = recovery.check, []

    def fail_once(db: database.Database) -> HistoryState:
        looks.append(db)
        if len(looks) == 1:
            raise StoreDamaged("database disk image is malformed")
        return real(db)

    monkeypatch.setattr(recovery, "check", fail_once)
    assert load(folder).note == ""
    assert list(folder.glob("*damaged*")) == []


def test_a_needed_backup_that_cannot_be_read_stops_the_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        backup = back_up(store, NOON)
    lose_event(folder, 2)

    def fail(file: Path) -> database.Database:
        if file == backup:
            raise StoreUnusable("disk I/O error", "look at the disk")
        return database.connect_frozen(file)

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "connect_frozen", fail)
        with pytest.raises(StoreUnusable, match="disk I/O error") as caught:
            Store.open(folder, outside(folder))
    assert f"mv {backup}" in caught.value.remedy
    loaded = load(folder)
    assert "was damaged" in loaded.note
    assert by_path(loaded)[approved(1).path] == approved(1)


def test_repeated_damage_leaves_three_damaged_files(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        back_up(store, NOON)
    for _ in range(4):
        lose_event(folder, 2)
        assert "was damaged" in load(folder).note
    assert len(list(folder.glob("*damaged*Z"))) == 3
