"""An older state folder undoes no denial, however it was restored.

The controls are a store that trusts any history, and one without change times or identities.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rootsd.core.changes import Change
from rootsd.core.model import Verdict
from rootsd.state.store.anchors import FirstAnchor, SecondAnchor
from rootsd.state.store.store import StoredState
from support.sample_decisions import NOON, approved, decide, denied, rule
from support.stores import EVERYTHING, append, by_path, is_approved, load, opened, outside

HANG_GUARD_S = 60
DENY = decide(denied(1), approved(1))
KeepCopy = Callable[[Path, Path], None]
PutBack = Callable[[Path, Path], None]


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, timeout=HANG_GUARD_S)


def _copy(source: Path, target: Path) -> None:
    _run("cp", "-a", source, target)


def _archive(source: Path, target: Path) -> None:
    _run("tar", "-cpf", target, "-C", source, ".")


def _synchronize(source: Path, target: Path) -> None:
    _run("rsync", "-a", "--checksum", "--delete", f"{source}/", f"{target}/")


def _replaced_by_copy(copy: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    _copy(copy, folder)


def _copied_over(copy: Path, folder: Path) -> None:
    _run("cp", "-a", f"{copy}/.", folder)


def _moved_in(copy: Path, folder: Path) -> None:
    folder.rename(folder.with_name("newer"))
    copy.rename(folder)


def _unpacked(copy: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    _run("tar", "-xpf", copy, "-C", folder)


def _unpacked_over(copy: Path, folder: Path) -> None:
    _run("tar", "-xpf", copy, "-C", folder)


def _synchronized_in_place(copy: Path, folder: Path) -> None:
    _run("rsync", "-a", "--checksum", "--delete", "--inplace", f"{copy}/", f"{folder}/")


_needs_rsync = pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
WAYS: Sequence[object] = [
    pytest.param(_copy, _replaced_by_copy, id="cp"),
    pytest.param(_copy, _copied_over, id="cp over it"),
    pytest.param(_copy, _moved_in, id="mv"),
    pytest.param(_archive, _unpacked, id="tar"),
    pytest.param(_archive, _unpacked_over, id="tar over it"),
    pytest.param(_synchronize, _synchronize, id="rsync", marks=_needs_rsync),
    pytest.param(_synchronize, _synchronized_in_place, id="rsync in place", marks=_needs_rsync),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def _assert_lapsed(loaded: StoredState) -> None:
    """Assert that nothing is approved, that the denials stay, and that the note says why."""
    assert not any(map(is_approved, loaded.projects))
    assert by_path(loaded)[denied(2).path] == denied(2)
    assert loaded.rules == (rule(1, Verdict.PENDING), rule(2, Verdict.DENIED))
    assert "rootsd approve --lapsed --all" in loaded.note


def _restore(folder: Path, keep: KeepCopy, put_back: PutBack) -> None:
    """Deny a project, and put back an older copy of the state folder."""
    append(folder, *EVERYTHING)
    copy = folder.with_name("copy")
    keep(folder, copy)
    append(folder, DENY)
    put_back(copy, folder)


@pytest.mark.parametrize(("keep", "put_back"), WAYS)
def test_a_denial_is_not_undone(folder: Path, keep: KeepCopy, put_back: PutBack) -> None:
    _restore(folder, keep, put_back)
    loaded = load(folder)
    _assert_lapsed(loaded)
    assert f"{folder} was replaced" in loaded.note
    assert str(outside(folder)) in loaded.note
    again = load(folder)
    assert again.note == ""
    assert not any(map(is_approved, again.projects))
    assert f"{folder} was replaced" in again.cause


@pytest.mark.parametrize(("keep", "put_back"), WAYS)
def test_control_without_a_second_anchor_the_denial_is_undone(
    folder: Path, keep: KeepCopy, put_back: PutBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.state.store.opening._why_distrusted", lambda *_: "")
    _restore(folder, keep, put_back)
    assert is_approved(by_path(load(folder))[approved(1).path])


def test_a_folder_moved_away_and_back_keeps_its_approvals(folder: Path) -> None:
    append(folder, *EVERYTHING)
    away = folder.rename(folder.with_name("away"))
    away.rename(folder)
    loaded = load(folder)
    assert loaded.note == ""
    assert is_approved(by_path(loaded)[approved(1).path])


@pytest.mark.parametrize("meanwhile", [[], [decide(denied(1))]], ids=["nothing", "a denial"])
def test_a_replaced_state_folder_lapses(folder: Path, meanwhile: list[object]) -> None:
    append(folder, *EVERYTHING)
    away = folder.rename(folder.with_name("away"))
    fresh = load(folder)
    assert f"{folder} was replaced" in fresh.note
    append(folder, *meanwhile)  # type: ignore[arg-type]
    shutil.rmtree(folder)
    away.rename(folder)
    _assert_lapsed(load(folder))


def test_after_a_lapse_the_replaced_folder_is_not_trusted_either(folder: Path) -> None:
    append(folder, *EVERYTHING)
    copy = folder.with_name("copy")
    _copy(folder, copy)
    append(folder, decide(approved(7)))
    _moved_in(copy, folder)
    _assert_lapsed(load(folder))
    shutil.rmtree(folder)
    folder.with_name("newer").rename(folder)
    _assert_lapsed(load(folder))


def _plainly_copied_over(copy: Path, folder: Path) -> None:
    _run("cp", "-r", f"{copy}/.", folder)


def _each_file_poured_over(copy: Path, folder: Path) -> None:
    """Restore contents and times, as a program does that knows nothing of inodes."""
    for file in filter(Path.is_file, copy.rglob("*")):
        target = folder / file.relative_to(copy)
        target.write_bytes(file.read_bytes())
        os.utime(target, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))


OVER: Sequence[object] = [
    pytest.param(_copied_over, id="cp -a"),
    pytest.param(_plainly_copied_over, id="cp -r"),
    pytest.param(_each_file_poured_over, id="contents and times"),
    pytest.param(_synchronized_in_place, id="rsync in place", marks=_needs_rsync),
]


def _restore_home(folder: Path, put_back: PutBack) -> None:
    """Deny a project, and put back an older copy of the state folder and of its second anchor."""
    append(folder, *EVERYTHING)
    _restore_parts(folder, put_back, DENY)


def _restore_parts(folder: Path, put_back: PutBack, later: Change) -> None:
    old = folder.with_name("old")
    old.mkdir()
    for part in (folder, outside(folder)):
        _copy(part, old / part.name)
    append(folder, later)
    for part in (folder, outside(folder)):
        put_back(old / part.name, part)


def test_a_home_folder_restored_with_both_anchors_lapses(folder: Path) -> None:
    _restore_home(folder, _replaced_by_copy)
    loaded = load(folder)
    _assert_lapsed(loaded)
    assert "is a copy" in loaded.note


def test_control_without_file_identities_a_restored_home_folder_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.state.store.anchors.change_times_ns", lambda _: (0, 0))
    for module in ("opening", "recovery"):
        monkeypatch.setattr(f"rootsd.state.store.{module}.identify", lambda _: None)
    _restore_home(folder, _replaced_by_copy)
    assert is_approved(by_path(load(folder))[approved(1).path])


def _restore_over(folder: Path, put_back: PutBack) -> None:
    """Restore a home folder over the files that exist."""
    append(folder, *EVERYTHING)
    before = (folder / "decisions.db").stat().st_ino
    _restore_parts(folder, put_back, DENY)
    assert (folder / "decisions.db").stat().st_ino == before


@pytest.mark.parametrize("put_back", OVER)
def test_a_home_folder_restored_over_the_existing_files_lapses(
    folder: Path, put_back: PutBack
) -> None:
    _restore_over(folder, put_back)
    loaded = load(folder)
    _assert_lapsed(loaded)
    assert f"Another program than rootsd changed {folder}/head" in loaded.note
    again = load(folder)
    assert again.note == ""
    assert not any(map(is_approved, again.projects))


@pytest.mark.parametrize("put_back", OVER)
def test_control_without_change_times_the_denial_is_undone(
    folder: Path, put_back: PutBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rootsd.state.store.anchors.change_times_ns", lambda _: (0, 0))
    _restore_over(folder, put_back)
    assert is_approved(by_path(load(folder))[approved(1).path])


@pytest.mark.parametrize("anchor", [FirstAnchor, SecondAnchor])
def test_a_backup_of_a_moment_between_two_writes_lapses_too(
    folder: Path, anchor: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy then looks like the files after a crash, but for the time of its restore."""

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    append(folder, *EVERYTHING)
    with opened(folder) as store, monkeypatch.context() as patch:
        patch.setattr(anchor, "write", crash)
        with pytest.raises(KeyboardInterrupt):
            store.append([decide(approved(7))], NOON)
    _restore_parts(folder, _copied_over, DENY)
    _assert_lapsed(load(folder))


@pytest.mark.parametrize("names", [["decisions.db"], ["decisions.db", "decisions.db-journal"]])
@pytest.mark.parametrize("with_head", [False, True])
def test_single_files_restored_over_the_existing_ones_lapse(
    folder: Path, names: list[str], *, with_head: bool
) -> None:
    append(folder, *EVERYTHING)
    copy = folder.with_name("copy")
    _copy(folder, copy)
    append(folder, DENY)
    for name in [*names, "head"] if with_head else names:
        _run("cp", "-a", copy / name, folder / name)
    _assert_lapsed(load(folder))


def test_a_write_ahead_log_beside_the_database_changes_nothing(folder: Path) -> None:
    """The database is in another mode, so SQLite takes no log for it."""
    append(folder, *EVERYTHING)
    other = folder.with_name("other.db")
    shutil.copy2(folder / "decisions.db", other)
    with closing(sqlite3.connect(other)) as db:  # an open log that takes the denials back
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("DELETE FROM record")
        db.commit()
        append(folder, DENY)
        for suffix in ("-wal", "-shm"):
            shutil.copy2(f"{other}{suffix}", folder / f"decisions.db{suffix}")
    assert not is_approved(by_path(load(folder))[approved(1).path])


@pytest.mark.parametrize(
    "words",
    [["chmod", "-R", "go-rwx"], ["chown", "-R", str(os.getuid())], ["cp", "-al"]],
    ids=" ".join,
)
@pytest.mark.parametrize("decides_after", [False, True])
def test_a_change_of_mode_owner_or_links_loses_no_decision(
    folder: Path, words: list[str], *, decides_after: bool
) -> None:
    """It may cost one command, because it changes the same time as a restore."""
    append(folder, *EVERYTHING)
    with opened(folder) as store:
        for part in (folder, outside(folder)):
            _run(*words, part, *([part.with_name(f"{part.name} links")] if "-al" in words else []))
        if decides_after:
            store.append([decide(approved(7))], NOON)
    loaded = load(folder)
    assert by_path(loaded)[denied(2).path] == denied(2)
    assert loaded.note == "" or "rootsd approve --lapsed --all" in loaded.note
    if decides_after:  # the daemon ran on, so its next write records the new time
        assert loaded.note == ""
        assert is_approved(by_path(loaded)[approved(7).path])


@pytest.mark.parametrize("how", ["the file", "the folder", "its content"])
def test_without_its_second_anchor_the_approvals_lapse(folder: Path, how: str) -> None:
    append(folder, *EVERYTHING)
    (anchor,) = outside(folder).iterdir()
    match how:
        case "the file":
            anchor.unlink()
        case "the folder":
            shutil.rmtree(outside(folder))
        case _:
            anchor.write_bytes(bytes(anchor.stat().st_size))
    loaded = load(folder)
    _assert_lapsed(loaded)
    assert f"{anchor} is missing" in loaded.note
    assert load(folder).note == ""


def test_an_older_second_anchor_of_the_same_chain_lapses_nothing(folder: Path) -> None:
    """This happens after a crash between the writes. An anchor never goes back by itself."""
    append(folder, *EVERYTHING)
    (anchor,) = outside(folder).iterdir()
    before = anchor.read_bytes()
    append(folder, DENY)
    anchor.write_bytes(before)
    loaded = load(folder)
    assert loaded.note == ""
    assert not is_approved(by_path(loaded)[approved(1).path])
    assert anchor.read_bytes() != before


def test_state_folders_of_one_user_have_separate_anchors(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    append(one, *EVERYTHING)
    append(other, DENY)
    assert load(one).note == load(other).note == ""
    assert len(list(outside(one).iterdir())) == 2
