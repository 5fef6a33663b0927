"""The store: everything appended is there afterwards, from any thread."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.changes import AuditNote, AuditRecord, ChangeVerb, ProjectChange, SettingChange
from rootsd.core.encoding import FocusRecord
from rootsd.core.errors import RootsdError
from rootsd.core.guard_setting import Guard
from rootsd.core.model import ObservedState, Presence, Project, ProjectKind, Verdict
from rootsd.files.private_files import NotPrivate
from rootsd.state.store import anchors as anchor_module
from rootsd.state.store.database import DiskFull, StoreUnusable, connect_frozen
from rootsd.state.store.rows import read_events
from rootsd.state.store.schema import MIN_RESERVE_BYTES
from rootsd.state.store.store import Store, StoredState
from support.ledger_harness import path
from support.sample_decisions import (
    NOON,
    PERSON,
    add,
    after,
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
from support.stores import EVERYTHING, append, back_up, by_path, edit, load, opened, outside

PAGE = 4096


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_new_store_is_empty_and_private(folder: Path) -> None:
    assert load(folder) == StoredState((), (), 1, "", is_new=True)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_the_guard_the_focus_and_refused_attempts_survive_a_restart(folder: Path) -> None:
    notes: list[AuditRecord] = [
        SettingChange(Guard.OFF, PERSON, ChangeVerb.GUARD_SET),
        AuditNote(ChangeVerb.REFUSED, "approve it", PERSON),
        SettingChange(FocusRecord("work"), PERSON, ChangeVerb.FOCUS_SET),
        SettingChange(Guard.TERMINAL, PERSON, ChangeVerb.GUARD_SET),
    ]
    with opened(folder) as store:
        for note in notes:
            store.append([note], NOON)
        assert [event.verb for event in store.last_events(2)] == ["focus set", "guard set"]
        assert len(store.last_events(9)) == 4
    loaded = load(folder)
    assert (loaded.guard, loaded.focus, loaded.is_new) == (Guard.TERMINAL, "work", False)
    with opened(folder) as store:
        store.append([SettingChange(FocusRecord(None), PERSON, ChangeVerb.FOCUS_SET)], NOON)
    assert load(folder).focus is None


def test_the_newest_names_of_what_is_gone_survive_a_restart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.state.store.store.MAX_GONE", 2)
    shown = [
        replace(each, observed=replace(each.observed, name=f"n{number}"))
        for number in range(1, 6)
        for each in (approved(number) if number == 5 else project(number),)
    ]
    append(folder, see(project(9)), *map(see, shown))
    for number in (0, 1, 2):
        with opened(folder) as store:
            gone = ProjectChange(path(number + 1), shown[number], None, ChangeVerb.OBSERVED)
            store.append([gone], after(number))
    with opened(folder) as store:
        store.append([ProjectChange(path(9), project(9), None, ChangeVerb.OBSERVED)], NOON)
    loaded = load(folder)
    assert by_path(loaded) == {path(4): shown[3], path(5): shown[4]}
    assert loaded.names == {"n2": path(2), "n3": path(3), "n5": path(5), "p5": path(5)}
    monkeypatch.setattr("rootsd.state.store.store.MAX_GONE", 9)
    assert load(folder).names == loaded.names, "an older one is still on the disk"


def test_appended_changes_survive_a_restart(folder: Path) -> None:
    changes = [
        see(project(1)),
        decide(approved(2)),
        decide(denied(3)),
        decide(granted(4)),
        add(rule(1, Verdict.DENIED)),
        add(rule(2, Verdict.APPROVED)),
        remove(rule(2, Verdict.APPROVED)),
    ]
    assert append(folder, *changes) == 6
    loaded = load(folder)
    expected = (project(1), approved(2), denied(3), granted(4))
    assert by_path(loaded) == {one.path: one for one in expected}
    assert loaded.rules == (rule(1, Verdict.DENIED),)
    assert (loaded.next_rule, loaded.note) == (3, "")


def test_the_last_decision_counts_and_forgetting_leaves_no_ruling(folder: Path) -> None:
    append(folder, decide(approved(1)), decide(approved(2)), decide(approved(3)), see(project(4)))
    append(folder, decide(denied(1), approved(1)), forget(approved(2), project(2)))
    assert append(folder, forget(approved(3))) == 6
    append(folder, ProjectChange(project(4).path, project(4), None, ChangeVerb.OBSERVED))
    assert by_path(load(folder)) == {one.path: one for one in (denied(1), project(2))}


def test_abandoned_names_are_remembered(folder: Path) -> None:
    odd = replace(approved(2), ruling=replace(approved(2).ruling, name='a"name":"b\\'))
    append(folder, decide(approved(1)), decide(odd), forget(approved(1)))
    with opened(folder) as store:
        assert store.load().names == {"p1": path(1), 'a"name":"b\\': path(2)}


def test_an_observation_leaves_no_event_and_does_not_touch_the_anchor(folder: Path) -> None:
    append(folder, decide(approved(1)))
    anchored = (folder / "head").read_bytes()
    seen = replace(approved(1), observed=replace(approved(1).observed, absent_since=after(9)))
    with opened(folder) as store:
        assert store.append([see(project(2)), see(seen, approved(1))], after(9)) is None
        assert store.append([], after(9)) is None
        assert len(store.events()) == 1
    assert (folder / "head").read_bytes() == anchored
    assert by_path(load(folder)) == {one.path: one for one in (seen, project(2))}


def test_a_ruling_without_a_sighting_shows_the_project_missing(folder: Path) -> None:
    uri = Project(
        b"https://x/", "u1", ObservedState(ProjectKind.URI, None, NOON), approved(9).ruling
    )
    append(folder, decide(approved(1)), decide(uri))
    edit(folder, "DELETE FROM sighting")
    projects = by_path(load(folder))
    lost = ObservedState(ProjectKind.GIT, None, NOON, Presence.MISSING)
    assert projects[approved(1).path] == replace(approved(1), observed=lost)
    assert projects[uri.path].observed.presence is Presence.PRESENT


def test_a_store_is_used_from_any_thread_and_damage_has_a_remedy(folder: Path) -> None:
    with opened(folder) as store:
        appended: list[int | None] = []
        worker = threading.Thread(
            target=lambda: appended.append(store.append([decide(approved(1))], NOON))
        )
        worker.start()
        worker.join(30)
        assert appended == [1]
        store._db.execute("DROP TABLE record")
        for use in (lambda: store.append([decide(denied(1))], NOON), lambda: back_up(store, NOON)):
            with pytest.raises(StoreUnusable, match="damaged") as caught:
                use()
            assert caught.value.remedy == "rootsd down && rootsd up"


def test_a_folder_that_others_may_read_is_refused(folder: Path) -> None:
    append(folder, *EVERYTHING)
    folder.chmod(0o755)
    with pytest.raises(NotPrivate):
        Store.open(folder, outside(folder))


def test_when_the_disk_is_full_nothing_of_a_batch_is_stored(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        before = store.load()
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        many = [decide(approved(number)) for number in range(3000)]
        with pytest.raises(DiskFull) as caught:
            store.append(many, NOON)
        assert caught.value.remedy
        assert store.load() == before
        store._db.execute("PRAGMA max_page_count = 1000000")
        assert store.append(many, NOON) == 3005
    assert len(load(folder).projects) == 3000


def test_a_decision_without_an_anchor_is_refused_and_can_be_repeated(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        with monkeypatch.context() as patch:
            patch.setattr(anchor_module, "sync", fail)
            with pytest.raises(RootsdError, match="Input/output error"):
                store.append([decide(denied(1), approved(1))], NOON)
        assert store.append([decide(denied(1), approved(1))], NOON) == 7
    loaded = load(folder)
    assert by_path(loaded)[denied(1).path] == denied(1)
    assert loaded.note == ""


def test_a_backup_is_due_with_the_first_decision_and_verified_while_the_store_is_used(
    folder: Path,
) -> None:
    with opened(folder) as store:
        store.append([see(project(1))], NOON)
        assert store.begin_backup() is None
        assert store.backup_due_in(NOON) == timedelta(0)
        store.append(EVERYTHING, NOON)
        head = store.begin_backup()
        store.append([decide(approved(7))], NOON)
        assert head is not None
        made = store.finish_backup(head, NOON)
        os.utime(made, (NOON.timestamp(), NOON.timestamp()))
        assert store.backup_due_in(after(3600)) == timedelta(hours=23)
        events = store.events()
        assert store.events(after=1, limit=2) == events[1:3]
    with closing(connect_frozen(made)) as copy:
        assert tuple(read_events(copy)) == events[:5]


def test_a_reserve_used_by_decisions_is_refilled(folder: Path) -> None:
    with opened(folder) as store:
        for first in range(0, 4_000, 2_000):
            many = [decide(approved(first + number)) for number in range(2_000)]
            store.append(many, NOON)
            free = store._db.execute("PRAGMA freelist_count").fetchone()[0]
            assert free * PAGE >= MIN_RESERVE_BYTES
