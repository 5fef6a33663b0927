"""The folder that a program needs with it never holds the files of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.wall.view.program_folder import program_folder


@pytest.mark.parametrize(
    ("program", "folder"),
    [
        ("tools/x/bin/run", "tools/x"), ("tools/x/run", "tools/x"),
        ("bin/run", "bin"), ("run", "run"),
        ("venv/bin/python", "venv"), ("link", "tools/x"),
    ],
)  # fmt: skip
def test_a_program_needs_the_folder_of_its_libraries(
    tmp_path: Path, program: str, folder: str
) -> None:
    for name in ("tools/x/bin/run", "tools/x/run", "bin/run", "run", "venv/pyvenv.cfg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to("/bin/sh")
    (tmp_path / "link").symlink_to("tools/x/bin/run")
    assert program_folder(str(tmp_path / program), str(tmp_path)) == str(tmp_path / folder)
