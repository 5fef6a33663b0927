"""The files that a person gives to a program behind the wall."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.wall.session.given_files import CannotRead, read_file


def test_a_file_that_is_missing_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(CannotRead) as caught:
        read_file(f"{tmp_path}/nope")
    assert caught.value.message == f"{tmp_path}/nope: No such file or directory"
