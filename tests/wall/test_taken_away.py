"""Files that are taken away to another file system come back as they were."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.taken_away import put_back_fact, take_away

pytestmark = [pytest.mark.needs("linux")]


def test_a_file_is_copied_to_another_file_system_and_back(tmp_path: Path) -> None:
    file = tmp_path / "hook"
    file.write_bytes(b"#!" + b"x" * 3_000_000)
    file.chmod(0o755)
    fact = Fact(FactKind.OBEYED, os.fsencode(file))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        assert os.stat(other).st_dev != tmp_path.stat().st_dev
        place = os.fsencode(other) + b"/0"
        assert take_away(fact, place)
        assert not file.exists()
        assert put_back_fact(fact, place)
        assert not os.path.lexists(place)
    assert file.read_bytes() == b"#!" + b"x" * 3_000_000
    assert file.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path)])
def test_nothing_but_a_file_is_copied(tmp_path: Path, make: object) -> None:
    path = tmp_path / "commondir"
    assert callable(make)
    make(path)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        assert not take_away(Fact(FactKind.OBEYED, os.fsencode(path)), os.fsencode(other) + b"/0")
    assert os.path.lexists(path)
