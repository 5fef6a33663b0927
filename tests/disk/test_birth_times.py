"""The birth time of a file cannot be set."""

from __future__ import annotations

import os
from pathlib import Path

from rootsd.disk.reader import birth_time_ns
from support.repositories import raw


def test_setting_a_time_does_not_change_the_birth_time(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to("nowhere")
    born = birth_time_ns(raw(file))
    assert born is not None
    os.utime(file, (0, 0))
    file.chmod(0)
    file.rename(tmp_path / "renamed")
    assert birth_time_ns(raw(tmp_path / "renamed")) == born
    after = birth_time_ns(raw(link))
    assert after is not None
    assert after >= born
    assert birth_time_ns(raw(tmp_path / "none")) is None
