"""Each folder has one path, even on a volume that accepts several spellings."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from rootsd.disk.canonical import canonical_name, canonical_spelling
from support.repositories import raw


def _insensitive(path: bytes) -> os.stat_result:
    """Do what lstat(2) does on a volume that ignores case and how accents are composed."""
    folder, name = os.path.split(path)
    alike = _folded(name)
    for entry in os.listdir(folder):
        if _folded(entry) == alike:
            return os.lstat(os.path.join(folder, entry))
    raise FileNotFoundError(path)


def _folded(name: bytes) -> str:
    return unicodedata.normalize("NFC", os.fsdecode(name)).casefold()


@pytest.mark.parametrize(
    ("there", "asked"),
    [("Api", "API"), ("Api", "Api"), ("café", "cafe\u0301"), ("CAFÉ", "café"), ("42", "42")],
)
def test_a_volume_that_accepts_other_spellings_gives_its_own(
    tmp_path: Path, there: str, asked: str
) -> None:
    (tmp_path / there).mkdir()
    (tmp_path / "other").mkdir()
    assert canonical_name(raw(tmp_path), asked.encode(), _insensitive) == there.encode()


@pytest.mark.parametrize("asked", ["none", "NONE", "é"])
def test_a_missing_path_keeps_its_name(tmp_path: Path, asked: str) -> None:
    assert canonical_name(raw(tmp_path), asked.encode(), _insensitive) == asked.encode()


def test_two_folders_that_differ_only_by_case_stay_separate(tmp_path: Path) -> None:
    for name in ("src", "SRC", "é", "É"):
        (tmp_path / name).mkdir()
        assert canonical_spelling(raw(tmp_path / name)) == raw(tmp_path / name)


def test_a_hard_link_is_not_another_spelling(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    os.link(tmp_path / "one", tmp_path / "two")
    assert canonical_spelling(raw(tmp_path / "one")) == raw(tmp_path / "one")


def test_a_path_with_a_missing_part_is_kept(tmp_path: Path) -> None:
    gone = raw(tmp_path) + b"/gone/Further"
    assert canonical_spelling(gone) == gone
    assert canonical_spelling(b"/") == b"/"
