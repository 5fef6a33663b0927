"""Notes about where a call of a tool works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.places.call_places import leave_note, take_note


def test_a_note_is_taken_once(tmp_path: Path) -> None:
    leave_note(os.fsencode(tmp_path), "toolu_1-a", "/src/web")
    assert take_note(os.fsencode(tmp_path), "toolu_1-a") == b"/src/web"
    assert take_note(os.fsencode(tmp_path), "toolu_1-a") is None


@pytest.mark.parametrize("call", ["", "../x", "a/b", ".", "x" * 129, "\0"])
def test_an_id_never_leads_out_of_the_folder(tmp_path: Path, call: str) -> None:
    (tmp_path / "x").write_text("/src/secret")
    with pytest.raises(ValueError, match="not the id"):
        leave_note(os.fsencode(tmp_path), call, "/src/web")
    assert take_note(os.fsencode(tmp_path), call) is None


def test_a_link_is_no_note(tmp_path: Path) -> None:
    leave_note(os.fsencode(tmp_path), "first", "/src/web")
    (tmp_path / "calls" / "a").symlink_to(tmp_path / "calls" / "first")
    assert take_note(os.fsencode(tmp_path), "a") is None


def test_notes_that_nobody_takes_are_removed(tmp_path: Path) -> None:
    leave_note(os.fsencode(tmp_path), "old", "/src/web")
    os.utime(tmp_path / "calls" / "old", (0, 0))
    leave_note(os.fsencode(tmp_path), "new", "/src/web")
    assert os.listdir(tmp_path / "calls") == ["new"]
