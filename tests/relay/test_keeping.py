"""What relays leave below the runtime folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rootsd.relay.barrier import Habit
from rootsd.relay.keeping import Habits, make_nowhere, nowhere_in


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "run"


def test_the_empty_folder_is_made_with_what_is_missing_above_it(run: Path) -> None:
    assert make_nowhere(bytes(run))
    assert make_nowhere(bytes(run))
    folder = Path(os.fsdecode(nowhere_in(bytes(run))))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o500
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_a_folder_that_is_not_empty_or_could_be_filled_stands_for_nothing(run: Path) -> None:
    folder = Path(os.fsdecode(nowhere_in(bytes(run))))
    folder.mkdir(parents=True)
    assert not make_nowhere(bytes(run)), "it can be written"
    (folder / "x").touch()
    folder.chmod(0o500)
    assert not make_nowhere(bytes(run)), "it is not empty"


def test_a_link_stands_for_nothing(run: Path, tmp_path: Path) -> None:
    run.mkdir(parents=True)
    (tmp_path / "empty").mkdir(mode=0o500)
    Path(os.fsdecode(nowhere_in(bytes(run)))).symlink_to(tmp_path / "empty")
    assert not make_nowhere(bytes(run))


def test_nothing_is_made_where_nothing_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not make_nowhere(bytes(tmp_path / "file" / "run"))
    Habits(bytes(tmp_path / "file" / "run"), ["s"]).note(Habit.ASKS)


def test_habits_are_kept_for_each_command(run: Path) -> None:
    one, other = Habits(bytes(run), ["s", "a b"]), Habits(bytes(run), ["s", "a", "b"])
    assert one.recall() is Habit.UNKNOWN
    one.note(Habit.ASKS)
    other.note(Habit.SILENT)
    assert (one.recall(), other.recall()) == (Habit.ASKS, Habit.SILENT)
    assert len(list((run / "servers").iterdir())) == 2


def test_a_habit_that_cannot_be_read_is_unknown(run: Path) -> None:
    habits = Habits(bytes(run), ["s"])
    habits.note(Habit.ASKS)
    (file,) = (run / "servers").iterdir()
    for text in (b"", b"\xff" * 100, b"nonsense"):
        file.write_bytes(text)
        assert habits.recall() is Habit.UNKNOWN
