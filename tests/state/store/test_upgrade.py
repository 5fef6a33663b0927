"""A store of an older version is opened without the loss of any decision, and backed up before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.changes import AuditRecord, Change, ChangeVerb, SettingChange
from rootsd.core.guard_setting import Guard
from rootsd.core.history import HistoryEvent
from rootsd.core.model import Verdict
from rootsd.state.store.backup import UPGRADE_PREFIX, list_backups
from rootsd.state.store.database import connect_frozen, read_number
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.recovery import check
from rootsd.state.store.rows import read_events
from rootsd.state.store.schema import MIGRATIONS, NewerStore, refuse_newer
from support.power_cuts import memory_folder
from support.sample_decisions import (
    PERSON,
    add,
    approved,
    decide,
    denied,
    forget,
    granted,
    project,
    remove,
    rule,
    see,
)
from support.stores import (
    EVERYTHING,
    OPENED_AT,
    append,
    by_path,
    later_version,
    load,
    opened,
    small_reserve,
)

OLD_VERSION = len(MIGRATIONS)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A state folder that a version before the one of `later_version` left behind."""
    folder = tmp_path / "state"
    append(folder, *EVERYTHING)
    return folder


def events_of(database: Path) -> tuple[int, list[HistoryEvent]]:
    """Return the version of a database, and its whole history."""
    with closing(connect_frozen(database)) as db:
        return read_number(db, "user_version"), list(read_events(db))


def backup_before_upgrade(folder: Path) -> Path:
    (found,) = (file for file in list_backups(folder) if file.name.startswith(UPGRADE_PREFIX))
    return found


def test_the_store_is_backed_up_before_its_version_changes(old: Path) -> None:
    _, before = events_of(old / DATABASE_NAME)
    with later_version() as later:
        load(old)
    backup = backup_before_upgrade(old)
    assert events_of(backup) == (OLD_VERSION, before)
    assert events_of(old / DATABASE_NAME) == (later, before)
    with pytest.raises(NewerStore, match=f"knows versions up to {OLD_VERSION}"):
        refuse_newer(old / DATABASE_NAME)
    refuse_newer(backup)
    with closing(connect_frozen(backup)) as db:
        check(db)


def test_a_store_of_this_version_needs_no_backup(old: Path) -> None:
    load(old)
    assert list_backups(old) == []


def test_daily_backups_do_not_replace_the_one_from_before_the_upgrade(old: Path) -> None:
    with later_version():
        load(old)
        with opened(old) as store:
            for _ in range(5):
                head = store.begin_backup()
                assert head is not None
                store.finish_backup(head, OPENED_AT)
        assert backup_before_upgrade(old).exists()


def test_a_backup_from_before_the_upgrade_repairs_a_damaged_store(old: Path) -> None:
    _, before = events_of(old / DATABASE_NAME)
    with later_version():
        load(old)
        (old / DATABASE_NAME).write_bytes(b"damaged")
        assert "has been rebuilt" in load(old).note
        with opened(old) as store:
            assert list(store.events()) == before


Story = Sequence[Callable[[int], Change | AuditRecord]]
STEPS: Story = (
    lambda number: decide(approved(number)),
    lambda number: decide(denied(number)),
    lambda number: decide(granted(number)),
    lambda number: see(project(number)),
    lambda number: forget(approved(number)),
    lambda number: add(rule(number, Verdict.APPROVED)),
    lambda number: add(rule(number, Verdict.DENIED)),
    lambda number: remove(rule(number, Verdict.DENIED)),
    lambda _: SettingChange(Guard.TERMINAL, PERSON, ChangeVerb.GUARD_SET),
)


@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(1, 6)).map(lambda step: step[0](step[1])),
        max_size=20,
    )
)
def test_any_older_store_keeps_its_history_and_its_state(
    changes: list[Change | AuditRecord],
) -> None:
    with memory_folder() as work, small_reserve():
        folder = work / "state"
        append(folder, *changes)
        _, before = events_of(folder / DATABASE_NAME)
        expected = load(folder)
        with later_version():
            loaded = load(folder)
            with opened(folder) as store:
                assert list(store.events()) == before
    assert loaded.note == ""
    assert by_path(loaded) == by_path(expected)
    assert (loaded.rules, loaded.next_rule, loaded.guard, loaded.focus) == (
        expected.rules, expected.next_rule, expected.guard, expected.focus,
    )  # fmt: skip
