"""Replacing the content of git's settings outside, from behind the wall."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rootsd.wall.git.settings_file import replace_content

OLD = b"[core]\n\tbare = false\n"
NEW = b'[branch "x"]\n\tremote = origin\n' + OLD
# A limit for the size of files ends a write early, as a full disk does.
_REPLACE = f"""
import os, resource
from rootsd.wall.git.settings_file import replace_content
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(OLD)} + 5, resource.RLIM_INFINITY))
try:
    replace_content(os.open(".", os.O_PATH), b"config", {OLD!r}, {NEW!r})
except OSError as error:
    print(type(error).__name__)
"""


def test_a_write_that_a_full_disk_cuts_off_leaves_what_was_there(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_bytes(OLD)
    command = [sys.executable, "-c", _REPLACE]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "OSError\n"
    assert config.read_bytes() == OLD
    assert replace_content(os.open(tmp_path, os.O_PATH), b"config", OLD, NEW)
    assert config.read_bytes() == NEW
    assert [*tmp_path.iterdir()] == [config]
