"""A store of version 0.1.0 is opened without the loss of any decision, and backed up before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rootsd.core.changes import AuditRecord, Change, GuardChange
from rootsd.core.guard import Guard
from rootsd.core.history import HistoryEvent
from rootsd.core.model import Access, ActorKind, LapseReason, Project, Verdict
from rootsd.core.timestamps import rfc3339
from rootsd.state.store.backup import FOLDER_NAME, list_backups
from rootsd.state.store.database import connect_frozen, read_number
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.recovery import check
from rootsd.state.store.rows import read_events
from rootsd.state.store.schema import MIGRATIONS, NewerStore, refuse_newer
from rootsd.state.store.store import StoredState
from rootsd.state.store.upgrade import UPGRADE_NAME, StoreUpgrade, read_upgrade, save_upgrade
from rootsd.state.upgrade_notice import UpgradeNotice
from support.power_cuts import memory_folder
from support.release_files import STORE_VERSION, printed_decisions, unpack_state
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
    OPENED_AT,
    append,
    by_path,
    is_approved,
    load,
    make_version_0_1_0,
    opened,
    small_reserve,
)

WITHOUT_TIME = (
    b'{"at": "then", "from_version": 3, "to_version": 7, "backup": "b", "kept": {},'
    b' "is_seen": false}'
)
OLD_MIGRATIONS = MIGRATIONS[:STORE_VERSION]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def old(folder: Path) -> Path:
    """The state folder that the real 0.1.0 left behind."""
    unpack_state(folder)
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> StoredState:
    """What the new version reads from that folder."""
    folder = tmp_path_factory.mktemp("top") / "state"
    unpack_state(folder)
    return load(folder)


def events_of(database: Path) -> tuple[int, list[HistoryEvent]]:
    """Return the version of a database, and its whole history."""
    with closing(connect_frozen(database)) as db:
        return read_number(db, "user_version"), list(read_events(db))


def printed(name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = printed_decisions()[name]["items"]
    return items


def test_the_history_stays_event_by_event(old: Path) -> None:
    version, before = events_of(old / DATABASE_NAME)
    assert version == STORE_VERSION
    assert len(before) > 20
    with opened(old) as store:
        assert list(store.events()) == before
    assert events_of(old / DATABASE_NAME) == (len(MIGRATIONS), before)


@pytest.mark.parametrize("item", printed("projects"), ids=lambda item: str(item["name"]))
def test_each_project_has_the_decision_that_0_1_0_printed(
    item: dict[str, Any], kept: StoredState
) -> None:
    path = item["path"] or item["uri"]
    found = by_path(kept)[path.encode()]
    assert (found.id, list(found.ruling.tags)) == (item["id"], item["tags"])
    assert _verdict(found) == item["verdict"]
    assert found.ruling.access == item["access"]
    if item["verdict"] == "approved":
        assert found.ruling.name == item["name"]
    decision = found.ruling.decision
    expires = decision.expires if decision else None
    assert (rfc3339(expires.at) if expires else None) == item["expires_at"]
    lapse = found.ruling.lapse
    assert (lapse.reason.value if lapse else None) == item["lapsed"]


def _verdict(found: Project) -> str:
    decision = found.ruling.decision
    if decision is not None:
        return decision.verdict.value
    # A rule that denies is not part of the ruling.
    is_denied = b"/secret/" in found.path
    granted_to = Verdict.APPROVED if found.ruling.grants else Verdict.PENDING
    return (Verdict.DENIED if is_denied else granted_to).value


def test_every_kind_of_decision_is_in_the_recorded_store(kept: StoredState) -> None:
    rulings = [found.ruling for found in kept.projects]
    decisions = [ruling.decision for ruling in rulings if ruling.decision]
    assert {decision.verdict for decision in decisions} == {Verdict.APPROVED, Verdict.DENIED}
    assert any(decision.access is Access.READ for decision in decisions)
    assert any(decision.expires for decision in decisions)
    givers = {grant.actor.kind for ruling in rulings for grant in ruling.grants}
    assert givers == {ActorKind.RULE, ActorKind.MAIN_CHECKOUT}
    assert {ruling.lapse.reason for ruling in rulings if ruling.lapse} == {LapseReason.REPLACED}
    assert any(found.path.startswith(b"https://") for found in kept.projects)
    assert any(ruling.origin for ruling in rulings)


def test_the_rules_and_settings_stay(kept: StoredState) -> None:
    rules = [(each.number, each.verdict.value, each.pattern.decode()) for each in kept.rules]
    shown = [(each["number"], each["verdict"], each["pattern"]) for each in printed("rules")]
    assert rules == shown
    assert kept.next_rule == max(number for number, *_ in rules) + 2  # one was removed
    assert (kept.guard, kept.focus) == (Guard.TERMINAL, "work")
    assert (kept.note, kept.cause) == ("", "")
    assert {"handbook", "docs"} <= kept.names.keys()


def test_the_store_is_backed_up_before_its_version_changes(old: Path) -> None:
    _, before = events_of(old / DATABASE_NAME)
    daily = list_backups(old)
    load(old)
    (made,) = set(list_backups(old)) - set(daily)
    assert events_of(made) == (STORE_VERSION, before)
    upgrade = read_upgrade(old)
    assert upgrade is not None
    assert old / FOLDER_NAME / upgrade.backup == made
    assert (upgrade.from_version, upgrade.to_version) == (STORE_VERSION, len(MIGRATIONS))
    assert upgrade.from_release == "0.1.0"
    counted = {item["verdict"] for item in printed("projects")}
    assert {"approved", "denied"} <= counted
    assert upgrade.kept["rules"] == len(printed("rules"))
    assert upgrade.kept["lapsed"] == 1


def test_daily_backups_do_not_replace_the_one_from_before_the_upgrade(old: Path) -> None:
    load(old)
    upgrade = read_upgrade(old)
    assert upgrade is not None
    with opened(old) as store:
        for _ in range(5):
            head = store.begin_backup()
            assert head is not None
            store.finish_backup(head, OPENED_AT)
    assert (old / FOLDER_NAME / upgrade.backup).exists()


def test_a_backup_made_by_0_1_0_repairs_a_damaged_store(old: Path) -> None:
    _, before = events_of(old / DATABASE_NAME)
    (old / DATABASE_NAME).write_bytes(b"damaged")
    loaded = load(old)
    assert "has been rebuilt" in loaded.note
    with opened(old) as store:
        found = list(store.events())
    salvaged = events_of(next(iter(list_backups(old))))[1]
    assert found[: len(salvaged)] == salvaged == before[: len(salvaged)]


def test_0_1_0_refuses_the_newer_store_and_reads_the_backup(old: Path) -> None:
    load(old)
    with pytest.raises(NewerStore, match=f"knows versions up to {STORE_VERSION}"):
        refuse_newer(old / DATABASE_NAME, OLD_MIGRATIONS)
    upgrade = read_upgrade(old)
    assert upgrade is not None
    backup = old / FOLDER_NAME / upgrade.backup
    refuse_newer(backup, OLD_MIGRATIONS)
    with closing(connect_frozen(backup)) as db:
        check(db)


def test_the_notice_is_new_until_a_person_has_seen_it_and_stays_readable(old: Path) -> None:
    load(old)
    assert UpgradeNotice.in_folder(old).is_new
    load(old)
    notice = UpgradeNotice.in_folder(old)
    assert notice.is_new
    notice.mark_seen()
    again = UpgradeNotice.in_folder(old)
    assert not again.is_new
    assert again.upgrade is not None


def test_a_new_store_and_one_of_this_version_were_not_upgraded(folder: Path) -> None:
    append(folder, decide(approved(1)))
    load(folder)
    assert not UpgradeNotice.in_folder(folder).is_new
    assert not (folder / UPGRADE_NAME).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"at": 1}',
        b"\xff",
        b"[" * 100_000,
        b'{"kept": {"a": "b"}}',
        WITHOUT_TIME,
    ],
)
def test_a_damaged_record_counts_as_none(folder: Path, content: bytes) -> None:
    append(folder, decide(approved(1)))
    (folder / UPGRADE_NAME).write_bytes(content)
    (folder / UPGRADE_NAME).chmod(0o600)
    assert UpgradeNotice.in_folder(folder).upgrade is None


def test_a_record_that_cannot_be_written_does_not_stop_the_start(old: Path) -> None:
    (old / f"{UPGRADE_NAME}.new").mkdir()
    assert any(map(is_approved, load(old).projects))
    assert read_upgrade(old) is None


def test_the_record_is_read_as_it_was_written(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    upgrade = StoreUpgrade("2026-11-25T12:00:00Z", 3, 7, "b.db", {"approved": 2}, is_seen=True)
    save_upgrade(folder, upgrade)
    assert read_upgrade(folder) == upgrade


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
    lambda _: GuardChange(Guard.TERMINAL, PERSON),
)


@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(1, 6)).map(lambda step: step[0](step[1])),
        max_size=20,
    )
)
def test_any_store_of_0_1_0_keeps_its_history_and_its_state(
    changes: list[Change | AuditRecord],
) -> None:
    with memory_folder() as work, small_reserve():
        folder, fresh = work / "old/state", work / "fresh/state"
        make_version_0_1_0(folder, changes)
        _, before = events_of(folder / DATABASE_NAME)
        loaded = load(folder)
        with opened(folder) as store:
            assert list(store.events()) == before
        assert loaded.note == ""
        append(fresh, *changes)
        expected = load(fresh)
    assert by_path(loaded).keys() == by_path(expected).keys()
    for path, found in by_path(loaded).items():
        assert found.ruling == by_path(expected)[path].ruling
    assert (loaded.rules, loaded.next_rule, loaded.guard, loaded.focus) == (
        expected.rules, expected.next_rule, expected.guard, expected.focus,
    )  # fmt: skip
