"""An older state folder undoes no denial, however it was restored.

The control is a store without its second anchor, like that of version 0.1.0.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rootsd.core.model import Verdict
from rootsd.state.store.store import StoredState
from support.sample_decisions import approved, decide, denied, rule
from support.stores import EVERYTHING, append, by_path, is_approved, load, outside

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


@pytest.mark.parametrize(("keep", "put_back"), WAYS)
def test_a_denial_is_not_undone(folder: Path, keep: KeepCopy, put_back: PutBack) -> None:
    append(folder, *EVERYTHING)
    copy = folder.with_name("copy")
    keep(folder, copy)
    append(folder, DENY)
    put_back(copy, folder)
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
    append(folder, *EVERYTHING)
    copy = folder.with_name("copy")
    keep(folder, copy)
    append(folder, DENY)
    put_back(copy, folder)
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


def test_a_home_folder_restored_with_both_anchors_lapses(folder: Path) -> None:
    append(folder, *EVERYTHING)
    old = folder.with_name("old")
    old.mkdir()
    for part in (folder, outside(folder)):
        _copy(part, old / part.name)
    append(folder, DENY)
    for part in (folder, outside(folder)):
        shutil.rmtree(part)
        _copy(old / part.name, part)
    loaded = load(folder)
    _assert_lapsed(loaded)
    assert "is a copy" in loaded.note


def test_control_without_file_identities_a_restored_home_folder_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("opening", "recovery"):
        monkeypatch.setattr(f"rootsd.state.store.{module}.identify", lambda _: None)
    append(folder, *EVERYTHING)
    old = folder.with_name("old")
    old.mkdir()
    for part in (folder, outside(folder)):
        _copy(part, old / part.name)
    append(folder, DENY)
    for part in (folder, outside(folder)):
        shutil.rmtree(part)
        _copy(old / part.name, part)
    assert is_approved(by_path(load(folder))[approved(1).path])


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


def test_an_older_second_anchor_of_the_same_chain_lapses_nothing(
    folder: Path,
) -> None:
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
