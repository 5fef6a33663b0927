"""A repository is a folder with a marker that is not an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.files.repository_folder import REPOSITORY_MARKERS, is_repository, repository_around


@pytest.mark.parametrize("marker", sorted(REPOSITORY_MARKERS))
def test_a_filled_folder_or_a_file_is_a_marker_and_an_empty_folder_is_none(
    tmp_path: Path, marker: str
) -> None:
    assert not is_repository(tmp_path)
    (tmp_path / marker).mkdir()
    assert not is_repository(tmp_path)
    (tmp_path / marker / "x").touch()
    assert is_repository(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / marker).touch()
    assert is_repository(other)


def test_the_innermost_repository_is_found_past_empty_markers(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "a" / "b"
    (tmp_path / ".hg" / "store").mkdir(parents=True)
    (tmp_path / "repository" / ".git" / "refs").mkdir(parents=True)
    (inner / ".git").mkdir(parents=True)
    assert repository_around(inner) == tmp_path / "repository"
    assert repository_around(tmp_path) == tmp_path
