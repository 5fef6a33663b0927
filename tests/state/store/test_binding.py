"""The binding of a database to its file and to its second anchor, and how a store gets one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from rootsd.core.guard_setting import Guard
from rootsd.core.record import BadRecord
from rootsd.files.private_files import NotPrivate
from rootsd.state.store import opening
from rootsd.state.store.anchors import (
    HEAD_NAME,
    DatabaseBinding,
    FileIdentity,
    FirstAnchor,
    SecondAnchor,
    identify,
    read_binding,
    second_anchor_file,
    write_binding,
)
from rootsd.state.store.database import connect, connect_frozen, transaction
from rootsd.state.store.opening import DATABASE_NAME
from rootsd.state.store.schema import migrate
from support.sample_decisions import NOON, approved, decide, denied
from support.stores import (
    EVERYTHING,
    append,
    back_up,
    by_path,
    edit,
    is_approved,
    load,
    lose_event,
    make_unbound,
    opened,
    outside,
)

IDENTITY = FileIdentity(2**64 - 1, -5, b"handle")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def _binding(folder: Path) -> DatabaseBinding | None:
    with closing(connect_frozen(folder / DATABASE_NAME)) as db:
        return read_binding(db)


def _second(folder: Path) -> Path:
    return second_anchor_file(folder, outside(folder))


@pytest.mark.parametrize(
    "binding",
    [
        DatabaseBinding(b"k" * 16, IDENTITY, "why"),
        DatabaseBinding(b"k" * 16, replace(IDENTITY, handle=None)),
        DatabaseBinding(b"k" * 16, None),
    ],
)
def test_a_binding_is_read_back(tmp_path: Path, binding: DatabaseBinding) -> None:
    file = tmp_path / "decisions.db"
    file.touch()
    with closing(connect(file)) as db:
        migrate(db, lambda: None)
        assert read_binding(db) is None
        for written in (DatabaseBinding(b"o" * 16, None, "old"), binding):
            with transaction(db):
                write_binding(db, written)
        assert read_binding(db) == binding
        db.execute("UPDATE binding SET born = NULL, inode = x'00'")
        with pytest.raises(BadRecord):
            read_binding(db)


@pytest.mark.needs("birth-times")
def test_a_copy_is_another_file_and_a_renamed_file_is_the_same(tmp_path: Path) -> None:
    file, copy, renamed = tmp_path / "file", tmp_path / "copy", tmp_path / "renamed"
    file.write_bytes(b"content")
    shutil.copy2(file, copy)
    before = identify(file)
    assert before is not None
    file.rename(renamed)
    assert before.is_same(identify(renamed))
    assert not before.is_same(identify(copy))
    renamed.write_bytes(b"other content")
    assert before.is_same(identify(renamed))


def test_an_identity_matches_if_only_the_handle_is_unknown() -> None:
    without = replace(IDENTITY, handle=None)
    assert IDENTITY.is_same(without)
    assert without.is_same(IDENTITY)
    assert not IDENTITY.is_same(None)
    assert not IDENTITY.is_same(replace(IDENTITY, handle=b"other"))
    assert not IDENTITY.is_same(replace(IDENTITY, born_ns=0))
    assert not IDENTITY.is_same(replace(IDENTITY, inode=1))


def test_an_unreadable_file_has_no_identity(tmp_path: Path) -> None:
    with pytest.raises(NotPrivate):
        identify(tmp_path / "missing")


def test_a_new_store_is_bound_at_once(folder: Path) -> None:
    assert load(folder).note == ""
    binding = _binding(folder)
    assert binding is not None
    assert binding.cause == ""
    with closing(SecondAnchor.open(_second(folder))) as second:
        assert second.record is not None
        assert second.record.key == binding.key
    assert _second(folder).stat().st_mode & 0o777 == 0o600
    assert outside(folder).stat().st_mode & 0o777 == 0o700


def test_an_unbound_state_gets_its_second_anchor_once_and_without_a_lapse(folder: Path) -> None:
    """A second anchor that is removed later cannot pass for one that was never written."""
    make_unbound(folder, EVERYTHING)
    loaded = load(folder)
    assert (loaded.note, loaded.cause, loaded.warning) == ("", "", "")
    assert by_path(loaded)[approved(1).path].ruling == approved(1).ruling
    assert _binding(folder) is not None
    assert load(folder).note == ""
    _second(folder).unlink()
    assert not any(map(is_approved, load(folder).projects))


def test_an_unbound_state_restored_later_is_not_trusted(folder: Path) -> None:
    make_unbound(folder, EVERYTHING)
    copy = shutil.copytree(folder, folder.with_name("copy"))
    append(folder, decide(denied(1), approved(1)))
    shutil.rmtree(folder)
    copy.rename(folder)
    loaded = load(folder)
    assert not any(map(is_approved, loaded.projects))
    assert f"{folder} was replaced" in loaded.note


def test_a_crash_between_the_steps_of_a_binding_lapses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_unbound(folder, EVERYTHING)
    with monkeypatch.context() as patch:
        patch.setattr(opening, "_bind", _crash)
        with pytest.raises(KeyboardInterrupt):
            load(folder)
    assert _binding(folder) is None
    assert _second(folder).exists()
    loaded = load(folder)
    assert loaded.note == ""
    assert by_path(loaded)[approved(1).path].ruling == approved(1).ruling
    assert _binding(folder) is not None


def test_a_crash_during_a_lapse_ends_in_a_lapse(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder, *EVERYTHING)
    _second(folder).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(FirstAnchor, "write", _crash)
        with pytest.raises(KeyboardInterrupt):
            load(folder)
    loaded = load(folder)
    assert not any(map(is_approved, loaded.projects))
    assert "is missing" in loaded.cause or "was replaced" in loaded.cause
    assert load(folder).note == ""


def _touch(folder: Path) -> None:
    """Give the first anchor new times, as a write does that a signal ends before its content."""
    file = folder / HEAD_NAME
    data = file.read_bytes()
    with file.open("r+b") as opened_file:
        opened_file.write(data)


def _set_back(folder: Path) -> None:
    os.utime(folder / HEAD_NAME, ns=(1, 1))


@pytest.mark.parametrize("times", [_touch, _set_back], ids=lambda each: each.__name__)
@pytest.mark.parametrize("goes_on", [True, False], ids=["decision", "no decision"])
def test_a_kill_before_the_content_of_the_first_anchor_lapses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: Callable[[Path], None], *, goes_on: bool
) -> None:
    """The controls: nobody was deciding, or a program set the times."""
    append(folder, *EVERYTHING)
    if goes_on:
        with monkeypatch.context() as patch:
            patch.setattr(FirstAnchor, "write", _crash)
            with pytest.raises(KeyboardInterrupt):
                append(folder, decide(denied(2)))
    times(folder)
    loaded = load(folder)
    is_killed = goes_on and times is _touch
    assert (loaded.note == "") == is_killed
    assert is_approved(by_path(loaded)[approved(1).path]) == is_killed
    assert load(folder).note == ""


def test_a_rebuild_of_damage_renews_the_binding_and_lapses_nothing(folder: Path) -> None:
    append(folder, *EVERYTHING)
    before = _binding(folder)
    lose_event(folder, 2)
    with opened(folder) as store:
        assert "lapsed" in store.load().note  # an event is permanently lost
    assert _binding(folder) != before
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        back_up(store, NOON)
    before = _binding(folder)
    lose_event(folder, 3)
    loaded = load(folder)
    assert "was damaged" in loaded.note
    assert "lapsed" not in loaded.note
    after = _binding(folder)
    assert before is not None
    assert after is not None
    assert after.key == before.key
    if after.file is not None:
        assert after.file.is_same(identify(folder / DATABASE_NAME))
        assert not after.file.is_same(before.file)
    assert load(folder).note == ""


@pytest.mark.needs("birth-times")
@pytest.mark.parametrize("is_copy", [False, True])
def test_damage_does_not_hide_a_copy(folder: Path, *, is_copy: bool) -> None:
    """A database that is both a copy and damaged is rebuilt, and still not trusted."""
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        back_up(store, NOON)
    if is_copy:
        shutil.copy2(folder / DATABASE_NAME, folder / "copy")
        os.replace(folder / "copy", folder / DATABASE_NAME)
    lose_event(folder, 2)
    loaded = load(folder)
    assert "was damaged" in loaded.note
    assert any(map(is_approved, loaded.projects)) is not is_copy


def test_a_binding_that_is_damaged_counts_as_damage(folder: Path) -> None:
    with opened(folder) as store:
        store.append(EVERYTHING, NOON)
        back_up(store, NOON)
    edit(folder, "UPDATE binding SET inode = NULL")
    loaded = load(folder)
    assert "was damaged" in loaded.note
    assert any(map(is_approved, loaded.projects))
    assert load(folder).note == ""


def test_a_damaged_store_without_its_second_anchor_does_not_count_as_unbound(folder: Path) -> None:
    append(folder, *EVERYTHING)
    _second(folder).unlink()
    edit(folder, "DROP TABLE binding")
    assert not any(map(is_approved, load(folder).projects))


def test_an_unbound_store_works_if_the_second_anchor_cannot_be_written(folder: Path) -> None:
    """No approval is lost, and status says what is missing."""
    make_unbound(folder, EVERYTHING)
    outside(folder).write_bytes(b"in the way")
    loaded = load(folder)
    assert loaded.note == ""
    assert "would not be detected" in loaded.warning
    assert "try: " in loaded.warning
    assert by_path(loaded)[approved(1).path].ruling == approved(1).ruling
    append(folder, decide(approved(7)))
    outside(folder).unlink()
    loaded = load(folder)
    assert (loaded.note, loaded.warning) == ("", "")
    assert is_approved(by_path(loaded)[approved(7).path])


def test_a_bound_store_does_not_open_if_its_second_anchor_cannot_be_read(folder: Path) -> None:
    append(folder, *EVERYTHING)
    kept = outside(folder).rename(outside(folder).with_name("kept"))
    outside(folder).write_bytes(b"in the way")
    with pytest.raises(NotPrivate):
        load(folder)
    outside(folder).unlink()
    kept.rename(outside(folder))
    loaded = load(folder)
    assert loaded.note == ""
    assert loaded.guard in {None, Guard.AGENTS}
    assert is_approved(by_path(loaded)[approved(1).path])


def test_a_link_to_the_state_folder_has_the_same_second_anchor(folder: Path) -> None:
    append(folder, *EVERYTHING)
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert second_anchor_file(link, outside(link)) == _second(folder)
