"""How a store opens after what a person, a crash or a disk did to its files."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rootsd.core.changes import Change
from rootsd.core.errors import Busy
from rootsd.core.history import START
from rootsd.core.model import LapseReason, Verdict
from rootsd.host import database, recovery
from rootsd.host.database import StoreUnusable
from rootsd.host.migrate import NewerStore
from rootsd.host.opening import DATABASE_NAME
from rootsd.host.private import NotPrivate
from rootsd.host.store import Loaded, Store
from support.decisions import NOON, approved, decide, denied, project, rule
from support.sizes import Sizes
from support.stores import (
    EVERYTHING,
    OPENED_AT,
    append,
    by_path,
    edit,
    is_approved,
    load,
    lose_event,
    opened,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def _assert_distrusted(loaded: Loaded, *, approvals: int = 2) -> None:
    """Nothing of EVERYTHING is approved any more, and what was denied still is."""
    projects = by_path(loaded)
    assert not any(is_approved(one) for one in projects.values())
    for number in (1, 3):
        lapse = projects[approved(number).path].ruling.lapse
        assert lapse is not None
        assert (lapse.reason, lapse.at) == (LapseReason.STORE_RESTORED, OPENED_AT)
    assert projects[denied(2).path] == denied(2)
    assert projects[project(4).path] == project(4)
    assert loaded.rules == (rule(2, Verdict.DENIED),)
    assert loaded.next_rule == 3
    assert f"{approvals} approvals wait" in loaded.note
    assert "1 approve rules were removed" in loaded.note


@pytest.mark.parametrize("lost", [decide(denied(1), approved(1)), decide(approved(7))])
def test_an_old_copy_put_back_turns_approvals_to_pending(folder: Path, lost: Change) -> None:
    append(folder, *EVERYTHING)
    old = (folder / DATABASE_NAME).read_bytes()
    append(folder, lost)
    (folder / DATABASE_NAME).write_bytes(old)
    _assert_distrusted(load(folder))
    again = load(folder)
    assert again.note == ""
    assert not any(map(is_approved, again.projects))
    approve = decide(approved(1), by_path(again)[approved(1).path])
    append(folder, approve)
    assert by_path(load(folder))[approved(1).path] == approved(1)


def test_a_copy_with_a_history_of_its_own_is_not_trusted(folder: Path, tmp_path: Path) -> None:
    append(folder, *EVERYTHING)
    for number in range(20):
        append(tmp_path / "other", decide(denied(number)), decide(approved(number)))
    shutil.copy(tmp_path / "other" / DATABASE_NAME, folder / DATABASE_NAME)
    assert not any(map(is_approved, load(folder).projects))


def test_a_history_without_its_anchor_is_not_trusted(folder: Path) -> None:
    append(folder, *EVERYTHING)
    (folder / "head").unlink()
    _assert_distrusted(load(folder))


def test_a_decision_committed_just_before_a_crash_counts(folder: Path) -> None:
    append(folder, *EVERYTHING)
    anchored = (folder / "head").read_bytes()
    append(folder, decide(approved(7)))
    (folder / "head").write_bytes(anchored)
    loaded = load(folder)
    assert loaded.note == ""
    assert by_path(loaded)[approved(7).path] == approved(7)
    assert (folder / "head").read_bytes() != anchored


def test_damage_that_a_backup_makes_good_costs_nothing(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        store.back_up(NOON)
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


def test_a_lost_tail_turns_approvals_to_pending(folder: Path) -> None:
    append(folder, *EVERYTHING)
    append(folder, decide(approved(7)), decide(denied(7), approved(7)))
    lose_event(folder, 7)
    loaded = load(folder)
    assert by_path(loaded)[approved(7).path].ruling.decision is None
    assert "was damaged" in loaded.note
    _assert_distrusted(loaded, approvals=3)


def test_a_deleted_database_comes_back_from_its_backup_without_approvals(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        store.back_up(NOON)
        store.append([decide(denied(1), approved(1))], NOON)
    (folder / DATABASE_NAME).unlink()
    _assert_distrusted(load(folder))


def test_a_deleted_database_without_a_backup_is_told(folder: Path) -> None:
    append(folder, *EVERYTHING)
    (folder / DATABASE_NAME).unlink()
    loaded = load(folder)
    assert (loaded.projects, loaded.rules) == ((), ())
    assert "it is gone" in loaded.note
    assert load(folder).note == ""


@pytest.mark.parametrize("crash_before", ["rebuilt.replace", "put aside"])
def test_a_crash_amid_a_rebuild_loses_nothing(folder: Path, crash_before: str) -> None:
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


def test_a_crash_before_anything_was_decided_is_a_new_store(folder: Path) -> None:
    load(folder)
    (folder / DATABASE_NAME).write_bytes(b"")
    assert load(folder).note == ""


def test_a_newer_store_is_refused_and_left_as_it_was(folder: Path) -> None:
    append(folder, *EVERYTHING)
    edit(folder, "PRAGMA user_version = 99")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(NewerStore):
        Store.open(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_link_in_the_place_of_the_database_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    (tmp_path / "elsewhere").touch()
    (folder / DATABASE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPrivate):
        Store.open(folder)
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
            Store.open(folder)
        other.execute("ROLLBACK")
    assert load(folder).note == ""
    assert list(folder.glob("*damaged*")) == []


def test_a_store_that_cannot_be_rebuilt_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, *EVERYTHING)
    lose_event(folder, 2)
    monkeypatch.setattr(recovery, "rebuild", lambda *_: recovery.Salvage(START, None))
    with pytest.raises(StoreUnusable, match="damaged again") as caught:
        Store.open(folder)
    assert caught.value.remedy


def test_no_flipped_bit_changes_a_decision_unseen(folder: Path, sizes: Sizes) -> None:
    with opened(folder) as store:
        for number in range(20):
            store.append([decide(approved(number)), decide(denied(number + 50))], NOON)
        store.append(EVERYTHING, NOON)
        compact = store.back_up(NOON).read_bytes()  # every page of it is in use
        expected = store.load()
    anchored = (folder / "head").read_bytes()
    chance = random.Random(5)  # noqa: S311 - to be reproducible is its purpose
    unseen_by_sqlite = 0
    for _ in range(sizes.pick(test=200, check=5_000, soak=1_000_000)):
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        damaged = bytearray(compact)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        (folder / DATABASE_NAME).write_bytes(damaged)
        (folder / "head").write_bytes(anchored)
        unseen_by_sqlite += _sqlite_sees_nothing_wrong(folder)
        try:
            loaded = load(folder)
        except NewerStore:
            continue
        _assert_nothing_changed_unseen(loaded, expected)
    assert unseen_by_sqlite > 0, "the control: SQLite's own check must miss some"


def _sqlite_sees_nothing_wrong(folder: Path) -> bool:
    """Whether some content differs from what was stored without SQLite complaining: it has no
    checksums, so a flipped bit inside a value is whole to it."""
    try:
        with closing(sqlite3.connect(folder / DATABASE_NAME)) as db:
            whole = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            differing = "FROM event JOIN record USING (seq) WHERE event.body <> record.body"
            return whole and bool(db.execute(f"SELECT 1 {differing}").fetchone())
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _assert_nothing_changed_unseen(loaded: Loaded, expected: Loaded) -> None:
    known = by_path(expected)
    for one in loaded.projects:
        assert one.ruling == known[one.path].ruling or not is_approved(one)
    assert {new for new in loaded.rules if new.verdict is Verdict.APPROVED} <= set(expected.rules)
    if not loaded.note:
        rulings = {one.path: (one.id, one.ruling) for one in loaded.projects}
        decided = {
            path: (one.id, one.ruling)
            for path, one in known.items()
            if one.ruling != project(0).ruling
        }
        assert rulings.items() >= decided.items()
        assert (loaded.rules, loaded.next_rule) == (expected.rules, expected.next_rule)
